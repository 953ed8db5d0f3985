# canopyd-credential.socket: units that get their token with LoadCredential=. Read by
# scripts/systemd-test.

# Runs a unit of the user's whose credential $1 is asked of canopyd, and prints it.
# A token's digest, so that no failure prints a token.
digest() { sha256sum | cut -c 1-16; }
token_digest() { user 'canopyctl token' | tr -d '\n' | digest; }

# Its standard input is the machine's: on one from outside, systemd 254 waits for a lock for ever.
unit_with() {
    user "timeout 30 systemd-run --user --quiet --pipe --wait --collect \
        --property=LoadCredential=$1:\$XDG_RUNTIME_DIR/canopyd/credential.sock \
        sh -c 'cat \"\$CREDENTIALS_DIRECTORY/$1\"' </dev/null"
}

credential_is_token() {
    start_sandbox 900
    user 'systemctl --user enable --now canopyd.socket canopyd-credential.socket
    systemctl --user stop canopyd.service'
    sign_in
    same "$(unit_with default | digest)" "$(token_digest)" "the credential's digest"
    # Nothing runs that could answer but the socket.
    user 'systemctl --user stop canopyd.service'
    same "$(unit_with default | digest)" "$(token_digest)" "the credential's digest"
}
check "a unit gets the profile's token as its credential, from a canopyd that it starts" credential_is_token

credential_of_system_unit() {
    # F12: how another user's program gets a token, with the socket's mode left as it is.
    same "$(root 'timeout 30 systemd-run --quiet --pipe --wait --collect --property=User=nobody \
        --property=LoadCredential=default:/run/user/4242/canopyd/credential.sock \
        sh -c "cat \"\$CREDENTIALS_DIRECTORY/default\""' | digest)" "$(token_digest)" "the credential's digest"
    same "$(user 'stat -c %a $XDG_RUNTIME_DIR/canopyd/credential.sock')" 600 "the socket's mode"
}
check "F12: a unit of the system, of another user, gets one too" credential_of_system_unit

no_such_profile() {
    local status=0
    unit_with nobody || status=$?
    # EXIT_CREDENTIALS
    same "$status" 243 "the unit's exit status"
}
check "a unit that asks for a profile that nobody is signed in to does not start" no_such_profile

foreign_peer() {
    # Not bound to an address of systemd's: more than a credential may have, and never less.
    local count
    count=$(user 'timeout 20 python3 -c "
import os, socket
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ[\"XDG_RUNTIME_DIR\"] + \"/canopyd/credential.sock\")
count = 0
while True:
    chunk = peer.recv(65536)
    if not chunk: break
    assert not chunk.strip(b\"\\0\"), \"something else than zeroes\"
    count += len(chunk)
print(count)"')
    [ "$count" -gt 1048576 ]
}
check "one who is not systemd gets more than any credential has, and no token" foreign_peer

large_token() {
    start_sandbox 900 --token-bytes 500000
    user 'canopyctl logout --local'
    sign_in
    same "$(unit_with default | wc -c)" "$(($(user 'canopyctl token' | wc -c) - 1))" "the credential's length"
    start_sandbox 900
    user 'canopyctl logout --local'
    sign_in
}
check "a token of half a megabyte arrives whole" large_token

many_units() {
    # More than are served at a time.
    user 'canopyctl token | tr -d "\n" >~/expected
    for number in $(seq 80); do
        systemd-run --user --quiet --unit=many-$number --no-block --property=Type=oneshot \
            --property=RemainAfterExit=yes \
            --property=LoadCredential=default:$XDG_RUNTIME_DIR/canopyd/credential.sock \
            sh -c "cmp ~/expected \$CREDENTIALS_DIRECTORY/default"
    done'
    within 40 eval 'same "$(user "systemctl --user list-units --all --no-legend --plain \"many-*\" |
        grep -c \" active  *exited \" || :")" 80 "the number of units that got the token"'
    user 'systemctl --user stop "many-*"; rm ~/expected'
}
check "80 units that start at once get their tokens" many_units

waits_bounded() {
    # The token runs out, the server is silent: the unit waits for 10 s and is refused.
    local status=0 began
    start_sandbox 5
    user 'canopyctl logout --local'
    sign_in
    server_away
    within 20 eval '! user "canopyctl token --timeout 0"'
    began=$SECONDS
    unit_with default || status=$?
    same "$status" 243 "the unit's exit status"
    [ $((SECONDS - began)) -lt 45 ]
    server_back
    within 20 eval 'user "canopyctl token"'
    unit_with default | grep -q .
}
check "a unit whose token cannot be had is refused in time, and starts once it can" waits_bounded
