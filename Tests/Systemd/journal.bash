# What the journal has of canopyd: fields, messages with an explanation, no secret, no flood. Read by
# scripts/systemd-test.

# How many lines there are of a kind, and with more fields where they are given.
lines_of() {
    canopyd_journal "CANOPYD_EVENT=$1" "${@:2}" -o cat | wc -l
}
token_digest() { user 'canopyctl token' | sha256sum; }

begin() {
    root 'install -Dm644 -t /usr/lib/systemd/catalog /opt/canopyd/systemd/canopyd.catalog
    journalctl --update-catalog'
    user 'mkdir -p ~/.config/canopyd
    printf "[log]\nLevel=debug\n" >~/.config/canopyd/canopyd.conf
    systemctl --user enable --now canopyd.socket'
    start_sandbox 900
    sign_in
    same "$(journal_fields signed_in CANOPYD_PROFILE CANOPYD_GENERATION PRIORITY _SYSTEMD_USER_UNIT)" \
        "default 0 6 canopyd.service" "profile, generation, priority and unit of a sign-in"
    journal_fields signed_in CANOPYD_DURATION | grep -qE '^[0-9]+\.[0-9]{3}$'
}
check "a line has fields: event, profile, generation, duration" begin

catalogue() {
    local id
    id=$(journal_fields signed_in MESSAGE_ID)
    contains "$(root "journalctl --list-catalog $id")" "Signed in"
    contains "$(canopyd_journal -x)" \
        "Profile default is signed in, and kept so."
}
check "journalctl -x explains it, with the profile's name" catalogue

failures_once() {
    local turn before away=CANOPYD_CODE=server_unreachable
    before=$(lines_of exchange_failed $away)
    server_away
    for turn in 1 2 3; do user 'canopyctl refresh 2>/dev/null' || :; done
    within 60 eval '[ "$(lines_of exchange_failing $away)" -ge 2 ]'
    server_back
    within 60 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
    # A busy machine may find its keyring slow meanwhile, which is another outage.
    within 10 eval '[ "$(lines_of recovered)" -ge 1 ]'
    same "$(($(lines_of exchange_failed $away) - before))" 1 "the number of warnings of an outage"
    same "$(journal_fields "exchange_failed $away" CANOPYD_PROFILE PRIORITY)" "default 4" \
        "profile and priority of a failure"
    same "$(journal_fields recovered CANOPYD_PROFILE PRIORITY)" "default 6" "what tells of its end"
}
check "an outage is one warning, however often it is tried again, and one line at its end" failures_once

quiet_when_well() {
    local before granted generation
    user 'printf "[log]\nLevel=info\n" >~/.config/canopyd/canopyd.conf
    systemctl --user reload canopyd.service'
    within 10 eval '[ "$(lines_of configuration_read)" -ge 1 ]'
    start_sandbox 6
    user 'canopyctl logout --local'
    sign_in
    other_lines() {
        canopyd_journal -o export |
            grep -a ^CANOPYD_EVENT= | grep -vc =granted
    }
    before=$(other_lines)
    granted=$(lines_of granted)
    within 30 eval '[ "$(user "canopyctl token --json" | value generation)" -ge 3 ]'
    user 'canopyctl token >/dev/null'
    same "$(other_lines)" "$before" "the number of lines after three rotations"
    # One program asked, of each generation up to the present one at the most.
    generation=$(user 'canopyctl token --json' | value generation)
    [ $(($(lines_of granted) - granted)) -ge 1 ]
    [ $(($(lines_of granted) - granted)) -le $((generation + 1)) ]
}
check "three rotations and many requests leave no line but one for a program's first token of each" quiet_when_well

flood() {
    local count
    # Each of these is refused, and told.
    user 'systemctl --user stop canopyd.service
    systemctl --user start canopyd-credential.socket canopyd.service
    python3 -c "
import os, socket
for number in range(300):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(os.environ[\"XDG_RUNTIME_DIR\"] + \"/canopyd/credential.sock\")
    while peer.recv(65536): pass
"'
    count=$(lines_of credential_refused)
    echo "$count lines"
    [ "$count" -ge 1 ] && [ "$count" -le 40 ]
}
check "300 refusals in a row are a few lines, not 300" flood

no_secret() {
    local secret
    user 'printf "[log]\nLevel=debug\n" >~/.config/canopyd/canopyd.conf
    systemctl --user reload canopyd.service'
    start_sandbox 900
    user 'canopyctl logout --local'
    sign_in
    user 'canopyctl refresh >/dev/null'
    admin POST faults '{"name":"echo-body","on":"refresh","count":1}' >/dev/null
    # At first the floor between two rotations answers.
    within 20 eval '! user "canopyctl refresh >/dev/null"'
    user 'secret-tool search --all xdg:schema com.canopy-io.canopyd.session 2>/dev/null' |
        sed -n 's/^secret = //p' >"$MACHINE/item"
    {
        value refresh_token <"$MACHINE/item"
        value access_token <"$MACHINE/item"
        user 'canopyctl token'
        printf '%s\n' "correct horse" "battery staple" eyJhbGciOi
    } | cut -c 1-40 >"$MACHINE/secrets"
    within 10 eval '[ "$(lines_of exchange_failed)" -ge 1 ]'
    canopyd_journal -o export >"$MACHINE/journal"
    root 'journalctl -o export --no-pager' >>"$MACHINE/journal"
    grep -qaF "An exchange failed" "$MACHINE/journal"
    while read -r secret; do
        [ "${#secret}" -ge 10 ]
        ! grep -qaF -e "$secret" "$MACHINE/journal" || {
            echo "a secret is in the journal: ${secret:0:4}…, of ${#secret} characters"
            return 1
        }
    done <"$MACHINE/secrets"
    [ "$(wc -l <"$MACHINE/secrets")" -ge 5 ]
}
check "H04: no password, access token or refresh token is in the journal, at the level debug" no_secret

stuck_journal() {
    local journal turn
    # A queue of one line rather than of hundreds, for sockets that are made from now on.
    scripts/machine network sysctl -qw net.unix.max_dgram_qlen=1
    root 'systemctl stop systemd-journald.service systemd-journald.socket \
        systemd-journald-dev-log.socket systemd-journald-audit.socket 2>/dev/null || :
    systemctl start systemd-journald.socket systemd-journald.service'
    user 'systemctl --user restart canopyd.service
    canopyctl status >/dev/null'
    journal=$(root 'systemctl show --value -p MainPID systemd-journald.service')
    root "kill -STOP $journal"
    # Each of these is a line.
    for turn in 1 2 3 4 5 6; do
        user 'echo wrong | timeout 20 canopyctl login --url http://127.0.0.1:8080 \
            --key pk_sandbox_native --email ada@example.com --password-stdin 2>&1' |
            grep -q 'password' || {
            root "kill -CONT $journal"
            echo "no answer to sign-in $turn"
            return 1
        }
    done
    root "kill -CONT $journal"
    within 10 eval '[ "$(lines_of sign_in_refused)" -ge 1 ]'
    [ "$(lines_of sign_in_refused)" -lt 6 ]
}
check "a journal that is stuck loses lines, and holds up nobody" stuck_journal
