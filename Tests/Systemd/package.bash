# The Debian package: built, looked at by lintian, installed on a machine without Swift, used and purged.
# CANOPYD_PACKAGE is one that was built before, on another Debian perhaps. Read by scripts/systemd-test.

package_is_built() {
    if [ -n "${CANOPYD_PACKAGE:-}" ]; then
        cp "$CANOPYD_PACKAGE" "$MACHINE/root/var/tmp"
    else
        # Of a release build, which alone brings Swift's own libraries along.
        packaging/build-deb "$MACHINE/root/var/tmp"
    fi
    contains "$(dpkg-deb --field "$MACHINE"/root/var/tmp/canopyd_*.deb Depends)" "libcurl4 (>= 7.85)"
    # What the README has users install by hand would come first.
    user "systemctl --user disable --now canopyd.socket canopyd-credential.socket 2>/dev/null || :
    rm -f ~/.local/bin/canopy* ~/.config/systemd/user/canopyd*
    systemctl --user daemon-reload"
    # Nothing may come from a toolchain that happens to lie there.
    root 'for directory in /opt/swift /opt/canopyd-build; do
        ! [ -d $directory ] || mount -t tmpfs -o ro none $directory
    done'
}
check "packaging/build-deb builds a package" package_is_built

package_is_sound() {
    # Documents say the licence to whom it is granted; a package for one's own machines closes no bug.
    lintian --fail-on error --suppress-tags bogus-mail-host,initial-upload-closes-no-bugs \
        "$MACHINE"/root/var/tmp/canopyd_*.deb
}
check "lintian finds no error in it" package_is_sound

installs() {
    # What it depends on is there under these names, or under those that came after them.
    root 'dpkg -i /var/tmp/canopyd_*.deb'
    user 'systemctl --user daemon-reload'
    same "$(user 'systemctl --user is-enabled canopyd.socket canopyd-credential.socket')" \
        $'enabled\nenabled' "the sockets, for everybody"
    same "$(user 'systemctl --user is-active canopyd.socket canopyd.service || :')" \
        $'inactive\ninactive' "what was started behind somebody's back"
    user 'systemd-analyze --user cat-config systemd/user-preset 2>/dev/null || :' >/dev/null
    same "$(user 'command -v canopyd canopyctl')" $'/usr/bin/canopyd\n/usr/bin/canopyctl' "where it is"
}
check "it installs, with its sockets enabled and nothing started" installs

serves() {
    start_sandbox 900
    install_keyring
    user 'systemctl --user start canopyd.socket'
    user 'printf "%s\n" "correct horse battery staple" | canopyctl login --url http://127.0.0.1:8080 \
        --key pk_sandbox_native --email ada@example.com --password-stdin'
    same "$(user 'canopyctl token | tr -d "\n" | wc -c' | awk '{ print ($1 > 20) }')" 1 "whether there is a token"
    contains "$(user 'canopyctl version 2>/dev/null || canopyctl --version')" \
        "$(sed -n 's/.*text = "\(.*\)".*/\1/p' Sources/AgentCore/Version.swift)"
}
check "canopyd from the package signs in and hands out tokens, without Swift on the machine" serves

doctor_is_content() {
    user 'CANOPY_URL=http://127.0.0.1:8080 canopyctl doctor'
}
check "E01: with lingering and an unlocked keyring, the doctor finds nothing" doctor_is_content

doctor_names_lingering() {
    local words
    # The mark alone: without lingering the manager would end, and with it what is checked next.
    root 'mv /var/lib/systemd/linger/canopy /var/tmp/linger'
    words=$(user 'CANOPY_URL=http://127.0.0.1:8080 canopyctl doctor || echo "status $?"')
    root 'mv /var/tmp/linger /var/lib/systemd/linger/canopy'
    contains "$words" "sudo loginctl enable-linger canopy"
    contains "$words" "status 1"
}
check "E01: without lingering the doctor fails, with the command that mends it" doctor_names_lingering

documents() {
    root 'for page in man1/canopyctl.1 man5/canopyd.conf.5 man7/canopyd-api.7 man8/canopyd.8; do
        zcat /usr/share/man/$page.gz | head -n 1 | grep -q "^.TH"
    done
    bash -n /usr/share/bash-completion/completions/canopyctl
    test "$(readlink /usr/bin/docker-credential-canopy)" = canopyctl'
}
check "man pages, completions and helpers' names are there" documents

upgrade() {
    local before
    before=$(user 'canopyctl status --json' | python3 -c 'import json, sys
print(json.load(sys.stdin)["profiles"][0]["signed_in_at"])')
    root 'dpkg -i /var/tmp/canopyd_*.deb'
    user 'systemctl --user daemon-reload; systemctl --user restart canopyd.service'
    user 'canopyctl token >/dev/null'
    same "$(user 'canopyctl status --json' | python3 -c 'import json, sys
print(json.load(sys.stdin)["profiles"][0]["signed_in_at"])')" "$before" "when it was signed in"
}
check "H10: installing it again keeps the session" upgrade

purge() {
    local files words
    files=$(root 'dpkg -L canopyd' | grep '^/usr/.*[^/]$')
    user 'canopyctl logout --all; systemctl --user stop canopyd.service canopyd.socket'
    words=$(root 'dpkg --purge canopyd')
    contains "$words" "canopyctl logout --all"
    root 'for file in '"$(tr '\n' ' ' <<<"$files")"'; do
        [ -d "$file" ] || [ ! -e "$file" ] || { echo "left: $file"; exit 1; }
    done'
    same "$(user 'secret-tool search --all xdg:schema com.canopy-io.canopyd.session 2>/dev/null | wc -l')" 0 \
        "the number of sessions in the keyring"
    same "$(user 'systemctl --user is-enabled canopyd.socket 2>&1 || :' | grep -cE "not-found|No such file")" 1 \
        "whether the socket is gone"
}
check "purged, it leaves no file and no secret, and says what it cannot know" purge
