# Every command of docs/headless.md, one after the other, on a machine that has nothing of canopyd yet
# for that user. Read by scripts/systemd-test.

prepare() {
    start_sandbox 900
    # The directory in which it was built, and the server, CA and proxy that are somebody's own.
    root 'mkdir -p /root/canopyd/.build
    ln -s /opt/canopyd-build /root/canopyd/.build/release
    ln -s /opt/canopyd/systemd /root/canopyd/systemd
    printf "%s\n" "correct horse battery staple" >/root/canopyd/password-file
    cp /etc/ssl/certs/ca-certificates.crt /etc/ssl/company.pem'
    python3 - docs/headless.md >"$MACHINE/blocks" <<'END'
import json, re, sys
text = open(sys.argv[1]).read()
blocks = re.findall(r"^<!-- root -->\n```sh\n(.*?)^```$", text, re.M | re.S)
assert len(blocks) == text.count("```sh\n"), "a block of commands is not marked with its user"
for name, value in {
    "https://auth.canopy-io.com": "http://127.0.0.1:8080",
    "pk_YOUR_NATIVE_KEY": "pk_sandbox_native",
    "service@example.com": "ada@example.com",
}.items():
    assert any(name in block for block in blocks), name
    blocks = [block.replace(name, value) for block in blocks]
print(json.dumps(blocks))
END
}
check "the blocks of docs/headless.md" prepare

block_count=$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)))' <"$MACHINE/blocks")
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
for number in $(seq 0 $((block_count - 1))); do
    check "docs/headless.md: $(title "$number")" run_block
done

survives() {
    # Taken back in the last block: nothing is left but the user.
    same "$(root 'ls /etc/credstore.encrypted' | grep -c canopyd-keyring)" 1 "the number of sealed passphrases"
    root 'test ! -e /var/lib/canopy-agent/.config/systemd/user/gnome-keyring-daemon.service.d/50-canopyd-headless.conf'
}
check "what was set up is taken back, and the other user's is left" survives
