# The access policy: units, credentials, forged names, executables, and what the journal has of them.
# Read by scripts/systemd-test.

read_again() { canopyd_journal CANOPYD_EVENT=configuration_read -o cat | wc -l; }
policy() {
    local before
    before=$(read_again)
    user "mkdir -p ~/.config/canopyd
    printf '[policy default]\n$1\n' >~/.config/canopyd/canopyd.conf
    systemctl --user reload canopyd.service"
    within 10 eval '[ "$(read_again)" -gt "$before" ]'
}
# Asks as the user's unit $1, and prints the status and what came.
as_unit() {
    user "timeout 30 systemd-run --user --quiet --pipe --wait --collect --unit=$1 \
        curl -sS -m 20 -w '\n%{http_code}\n' --unix-socket \$XDG_RUNTIME_DIR/canopyd/agent.sock \
        http://canopyd/v1/token"
}
# The credential "default" of a unit $1: of the user's, and of the system's.
user_credential() {
    user "timeout 30 systemd-run --user --quiet --pipe --wait --collect --unit=$1 \
        --property=LoadCredential=default:\$XDG_RUNTIME_DIR/canopyd/credential.sock \
        sh -c 'cat \"\$CREDENTIALS_DIRECTORY/default\"'"
}
system_credential() {
    root "timeout 30 systemd-run --quiet --pipe --wait --collect --unit=$1 --property=User=nobody \
        --property=LoadCredential=default:/run/user/4242/canopyd/credential.sock \
        sh -c 'cat \"\$CREDENTIALS_DIRECTORY/default\"'"
}
digest() { sha256sum | cut -c 1-16; }

begin() {
    start_sandbox 900
    user 'systemctl --user enable --now canopyd.socket canopyd-credential.socket
    systemctl --user start canopyd.service'
    policy 'AllowUnit=good.service'
    # Nobody is signed in, so that anybody may: then the session is the unit's.
    sign_in
    user 'canopyctl token --profile default >/dev/null' && return 1
    user 'canopyctl status >/dev/null'
}
check "anybody signs in where nobody is, and sees states; the session is for whom the policy names" begin

units() {
    local said
    same "$(as_unit good | tail -n 1)" 200 "the answer to good.service"
    said=$(as_unit bad)
    same "$(tail -n 1 <<<"$said")" 403 "the answer to bad.service"
    contains "$said" "unit bad.service) may not use profile default"
    contains "$said" "AllowUnit=bad.service"
    same "$(journal_fields denied CANOPYD_PROFILE CANOPYD_UNIT CANOPYD_UID PRIORITY)" \
        "default bad.service 4242 4" "profile, unit, uid and priority of a denial"
    same "$(journal_fields granted CANOPYD_PROFILE CANOPYD_UNIT CANOPYD_GENERATION PRIORITY)" \
        "default good.service 0 6" "profile, unit, generation and priority of a grant"
    # What is below a unit is in it, and a user's unit is in its manager's.
    policy 'AllowUnit=user@4242.service'
    same "$(as_unit bad | tail -n 1)" 200 "the answer to a unit of user@4242.service"
    policy 'AllowUnit=good.service'
}
check "AllowUnit=: a unit of the user's that is named is answered, another is not" units

reload() {
    policy 'AllowUnit=bad.service'
    same "$(as_unit good | tail -n 1)" 403 "the answer to good.service"
    same "$(as_unit bad | tail -n 1)" 200 "the answer to bad.service"
    policy 'AllowUnit=good.service'
}
check "a reload is enough for another policy" reload

credentials_of_users() {
    local status=0
    user_credential good >"$MACHINE/credential"
    [ "$(wc -c <"$MACHINE/credential")" -gt 100 ]
    same "$(digest <"$MACHINE/credential")" \
        "$(as_unit good | head -n 1 | value access_token | tr -d '\n' | digest)" "the credential"
    user_credential bad || status=$?
    # EXIT_CREDENTIALS
    same "$status" 243 "the exit status of bad.service"
    same "$(journal_fields denied CANOPYD_UNIT CANOPYD_UID)" "bad.service 4242" "who was denied"
}
check "LoadCredential= of the user's units: one that is named starts with the token, another not at all" \
    credentials_of_users

credentials_of_system() {
    local status=0
    same "$(system_credential good | digest)" "$(digest <"$MACHINE/credential")" "the credential"
    system_credential bad >/dev/null || status=$?
    same "$status" 243 "the exit status of bad.service"
    same "$(journal_fields denied CANOPYD_UNIT)" bad.service "who was denied"
}
check "LoadCredential= of the system's units, of another user: the same" credentials_of_system

# Connects as systemd would for good.service; prints how much came, and fails if it was no zeroes.
forge() {
    user "$1 timeout 20 python3 -c '
import os, socket
peer = socket.socket(socket.AF_UNIX)
peer.bind(b\"\\0\" + b\"0123456789abcdef/unit/good.service/default\")
peer.connect(os.environ[\"XDG_RUNTIME_DIR\"] + \"/canopyd/credential.sock\")
count = 0
while True:
    chunk = peer.recv(65536)
    if not chunk: break
    assert not chunk.strip(b\"\\0\"), \"something else than zeroes\"
    count += len(chunk)
print(count)'"
}
forged() {
    [ "$(forge '')" -gt 1048576 ]
    contains "$(journal_fields denied CANOPYD_REASON)" "it asks as good.service, and is not in that unit"
    [ "$(forge 'systemd-run --user --quiet --pipe --wait --collect --unit=bad')" -gt 1048576 ]
    same "$(journal_fields denied CANOPYD_UNIT)" bad.service "who forged it"
    # Within the unit it is the unit that asks, by whichever of its programs.
    ! forge 'systemd-run --user --quiet --pipe --wait --collect --unit=good' 2>"$MACHINE/forged"
    contains "$(cat "$MACHINE/forged")" "something else than zeroes"
}
check "a name in an address is no proof: who forges good.service's gets no token" forged

executables() {
    local said
    policy 'AllowUnit=good.service\nAllowExecutable=/usr/bin/curl'
    # In the unit's sandbox no program's executable can be seen, and that is said.
    said=$(as_unit bad)
    same "$(tail -n 1 <<<"$said")" 403 "the answer to curl"
    contains "$said" "canopyd runs in a user namespace (PrivateUsers=)"
    contains "$(journal_fields configuration_ignored CANOPYD_LINE)" "AllowExecutable= lets nobody in"
    same "$(as_unit good | tail -n 1)" 200 "the answer to good.service"
    user 'install -Dm644 /opt/canopyd/systemd/executables.conf \
        ~/.config/systemd/user/canopyd.service.d/executables.conf
    systemctl --user daemon-reload
    systemctl --user restart canopyd.service
    cp /usr/bin/curl ~/other-curl'
    same "$(as_unit bad | tail -n 1)" 200 "the answer to curl"
    same "$(journal_fields granted CANOPYD_EXECUTABLE CANOPYD_UNIT)" "/usr/bin/curl bad.service" \
        "executable and unit of a grant"
    said=$(user '~/other-curl -sS -m 20 --unix-socket $XDG_RUNTIME_DIR/canopyd/agent.sock \
        http://canopyd/v1/token')
    contains "$said" '"code":"forbidden"'
    contains "$said" "/home/canopy/other-curl"
    # What needs no namespace is still in force.
    same "$(root "awk '/^(NoNewPrivs|Seccomp):/ { print \$2 }' /proc/$(main_process)/status | tr '\n' ' '")" \
        "1 2 " "NoNewPrivs and Seccomp"
    user 'rm ~/.config/systemd/user/canopyd.service.d/executables.conf ~/other-curl
    systemctl --user daemon-reload
    systemctl --user restart canopyd.service'
    policy 'AllowUnit=good.service'
}
check "AllowExecutable=: in the sandbox it names nobody, and says so; with executables.conf it works" executables

no_token_told() {
    local token
    token=$(cut -c 1-40 "$MACHINE/credential")
    canopyd_journal -o export >"$MACHINE/journal"
    grep -qa CANOPYD_EVENT=denied "$MACHINE/journal"
    grep -qa CANOPYD_EVENT=granted "$MACHINE/journal"
    ! grep -qaF -e "$token" "$MACHINE/journal"
}
check "of grants and denials the journal has who, what and when, and never the token" no_token_told
