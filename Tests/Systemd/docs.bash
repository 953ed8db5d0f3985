# Every command of docs/headless.md, one after the other, on a machine that has nothing of canopyd yet
# for that user; then, by another user, those of README.md that need systemd. scripts/docs runs the
# others, and sees to it that no block is left out. Read by scripts/systemd-test.

# Takes the blocks of commands of the page $1 that are marked with $2, with the names that follow, each in at least
# one of them, replaced by the values after them.
take_blocks() {
    python3 - "$@" >"$MACHINE/blocks" <<'END'
import json, sys
sys.path.insert(0, "Tests/Consumers")
from documents import blocks
page, mark, *pairs = sys.argv[1:]
found = [block.text for block in blocks(page) if block.language == "sh" and block.mark == mark]
for name, value in zip(pairs[::2], pairs[1::2]):
    assert any(name in text for text in found), name
    found = [text.replace(name, value) for text in found]
print(json.dumps(found))
END
}
block_count() { python3 -c 'import json, sys; print(len(json.load(sys.stdin)))' <"$MACHINE/blocks"; }

prepare() {
    start_sandbox 900
    # The directory in which it was built, and the server, CA and proxy that are somebody's own.
    root 'mkdir -p /root/canopyd/.build
    ln -s /opt/canopyd-build /root/canopyd/.build/release
    ln -s /opt/canopyd/systemd /root/canopyd/systemd
    printf "%s\n" "correct horse battery staple" >/root/canopyd/password-file
    cp /etc/ssl/certs/ca-certificates.crt /etc/ssl/company.pem'
    take_blocks docs/headless.md root \
        "https://auth.canopy-io.com" "http://127.0.0.1:8080" \
        pk_YOUR_NATIVE_KEY pk_sandbox_native service@example.com ada@example.com
    same "$(block_count)" "$(grep -c '^```sh$' docs/headless.md)" "the number of blocks that are marked with their user"
}
check "the blocks of docs/headless.md" prepare

block() { python3 -c 'import json, sys; print(json.load(sys.stdin)[int(sys.argv[1])])' "$1" <"$MACHINE/blocks"; }
title() { block "$1" | sed -n '1s/^\(.\{70\}\).*/\1…/; 1p'; }
run_block() {
    # What a shell would do with a text that is typed in, but for the first error, which ends it.
    block "$number" >"$MACHINE/root/root/block"
    root "cd /root/canopyd; T=60; exec timeout 60 sh -eu /root/block"
    if [[ $(block "$number") == *"canopyctl login"* ]]; then
        root 'as-canopy-agent canopyctl status' | grep -q ada@example.com
    fi
}
for number in $(seq 0 $(($(block_count) - 1))); do
    check "docs/headless.md: $(title "$number")" run_block
done

survives() {
    # Taken back in the last block: nothing is left but the user.
    same "$(root 'ls /etc/credstore.encrypted' | grep -c canopyd-keyring)" 1 "the number of sealed passphrases"
    root 'test ! -e /var/lib/canopy-agent/.config/systemd/user/gnome-keyring-daemon.service.d/50-canopyd-headless.conf'
}
check "what was set up is taken back, and the other user's is left" survives

# MARK: README.md, by a person who has sudo and sits in a checkout

as_reader() {
    root "cd /home/reader/canopyd; exec timeout 120 runuser -u reader -- env -i HOME=/home/reader USER=reader \
        PATH=/home/reader/.local/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/\$(id -u reader) \
        DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/\$(id -u reader)/bus CANOPY_URL=http://127.0.0.1:8080 \
        bash -euo pipefail -c '$1'"
}

prepare_reader() {
    # A home of its own, a manager as after a login, and a checkout that is built.
    root 'useradd --create-home --shell /bin/bash reader
    loginctl enable-linger reader
    echo "reader ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/reader
    mkdir -p /home/reader/canopyd/.build
    ln -s /opt/canopyd-build /home/reader/canopyd/.build/release
    cp -r /opt/canopyd/scripts /opt/canopyd/systemd /opt/canopyd/man /opt/canopyd/docs /home/reader/canopyd
    printf "%s\n" "correct horse battery staple" >/home/reader/canopyd/password-file
    chown -R reader: /home/reader/canopyd
    until [ -S "/run/user/$(id -u reader)/bus" ]; do sleep 0.1; done'
    # It is built already, as /opt/canopyd-build.
    take_blocks README.md reader "scripts/install " "scripts/install --no-build " \
        pk_YOUR_NATIVE_KEY pk_sandbox_native service@example.com ada@example.com
}
check "the blocks of README.md that need systemd" prepare_reader

run_reader_block() {
    block "$number" >"$MACHINE/root/home/reader/block"
    as_reader ". /home/reader/block"
    if [[ $(block "$number") == *"canopyctl login"* ]]; then
        as_reader 'canopyctl status' | grep -q ada@example.com
    fi
}
for number in $(seq 0 $(($(block_count) - 1))); do
    check "README.md: $(title "$number")" run_reader_block
done

# A unit as a page shows it, with the program that it starts.
unit_of() {
    python3 - "$1" <<'END'
import sys
sys.path.insert(0, "Tests/Consumers")
from documents import example
print(example(sys.argv[1], "ini", "[Service]"))
END
}
is_handed() {
    # The token of the profile $1, by the unit on standard input.
    cat >"$MACHINE/root/home/reader/.config/systemd/user/my.service"
    root 'printf "#!/bin/sh\ncat \"\${1#--token-file=}\" >/home/reader/handed\n" >/usr/local/bin/my-program
    chmod 755 /usr/local/bin/my-program
    mkdir -p /home/reader/.config/systemd/user'
    as_reader "rm -f ~/handed; systemctl --user daemon-reload; systemctl --user start --wait my.service
    [ \"\$(cat ~/handed)\" = \"\$(canopyctl token --profile $1)\" ]"
}
readme_unit() {
    as_reader 'canopyctl login --profile work --key pk_sandbox_native --email ada@example.com --password-stdin <password-file'
    unit_of README.md | is_handed work
}
check "README.md: [Service], as it stands there, starts its program with the token" readme_unit
integrations_unit() {
    { unit_of docs/integrations.md; echo 'ExecStart=my-program --token-file=%d/canopy'; } | is_handed default
}
check "docs/integrations.md: [Service] hands over the token of the usual profile" integrations_unit
