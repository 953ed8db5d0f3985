# The successor slots in the service manager's descriptor store: a token that the keyring does not
# take outlives every process of ours. Read by scripts/systemd-test.

generation() { user 'canopyctl token --json' | value generation; }
stored_descriptors() { user 'systemctl --user show --value -p NFileDescriptorStore canopyd.service'; }
restarted() {
    local now
    now=$(main_process) && [ "$now" != "$1" ] && user 'canopyctl status >/dev/null'
}

begin() {
    start_sandbox 900
    user 'systemctl --user enable --now canopyd.socket'
    sign_in
    within 10 eval 'same "$(stored_descriptors)" 1 "the number of descriptors in the store"'
    same "$(generation)" 0 "the generation"
}
check "each profile's slot is given to the service manager" begin

# The server rotates, and its answer waits until the keyring is locked.
rotated_into_locked_keyring() {
    local held=0
    admin POST faults '{"name":"hold","on":"refresh","when":"after","count":1}' >/dev/null
    user 'canopyctl refresh --timeout 0' || :
    within 15 eval 'same "$(counted held)" 1 "the number of held answers"'
    lock_keyring
    admin POST release '{}' >/dev/null
    # The successor is in its slot when its access token is served.
    within 15 eval 'same "$(generation)" 1 "the generation"'
    contains "degraded keyring_locked" "$(state)"
}
check "locked right after the server rotated: the new access token is served, and the keyring has the old one" rotated_into_locked_keyring

killed_twice() {
    local turn before
    for turn in 1 2; do
        before=$(main_process)
        # The exchange too: nothing but the manager has the successor then.
        root "kill -9 $before \$(pgrep -x canopyd-exchang || :)"
        within 20 restarted "$before"
    done
    same "$(stored_descriptors)" 1 "the number of descriptors in the store"
    within 15 eval 'same "$(generation)" 1 "the generation that is served"'
    contains "degraded keyring_locked" "$(state)"
}
check "canopyd and its restart killed with -9: the token of the lost answer is served still" killed_twice

nothing_presented() {
    same "$(counted families.0.refresh_requests)" 1 "the number of refresh requests"
    same "$(counted families.0.maximum_in_flight)" 1 "the number of requests at once"
}
check "nothing is presented meanwhile" nothing_presented

stored_after_unlock() {
    unlock_keyring
    within 20 eval 'same "$(state)" active "the state"'
    # What the keyring holds is what comes next, and the server takes it.
    user 'canopyctl refresh' || :
    within 30 eval 'user "canopyctl refresh" >/dev/null; [ "$(generation)" -ge 2 ]'
    same "$(counted family_revocations)" 0 "the number of families revoked"
    same "$(counted identity_revocations)" 0 "the number of identities revoked"
}
check "unlocked, the keyring takes it, and the next rotation goes on from there" stored_after_unlock

version=$(root 'systemctl --version' | sed -n 's/^systemd \([0-9]*\).*/\1/p')
has_254() { [ "$version" -ge 254 ]; }

survives_stop() {
    # A sign-in of its own: nothing is held back after it.
    user 'canopyctl logout --local'
    sign_in
    rotated_into_locked_keyring
    # What the exchange tries for at its end is over when stop returns.
    user 'systemctl --user stop canopyd.socket canopyd.service'
    same "$(user 'systemctl --user is-active canopyd.service || :')" inactive "canopyd.service"
    same "$(stored_descriptors)" 1 "the number of descriptors in the store"
    # Up to 256 no socket starts a service whose store keeps anything; canopyd makes its own.
    if [ "$version" -lt 257 ]; then
        user 'systemctl --user restart canopyd.service'
    else
        user 'systemctl --user start canopyd.socket'
    fi
    within 15 eval 'same "$(generation)" 1 "the generation that is served"'
    unlock_keyring
    within 20 eval 'same "$(state)" active "the state"'
    within 30 eval 'user "canopyctl refresh" >/dev/null; [ "$(generation)" -ge 2 ]'
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
if has_254; then
    check "stopped and started with a locked keyring: the slot outlives it (FileDescriptorStorePreserve=)" survives_stop
fi

# A rotation whose answer the server holds back.
begin_rotation() {
    before=$(generation)
    # Once: each of them would be one more answer that is held.
    admin POST faults '{"name":"hold","on":"refresh","when":"after","count":1}' >/dev/null
    within 30 eval 'user "canopyctl refresh --timeout 0 >/dev/null 2>&1"
        [ "$(counted held)" = 1 ]'
}
exchange() { root 'pgrep -x canopyd-exchang || :'; }

stop_waits() {
    local before
    # A sign-in of its own: nothing is held back after it.
    user 'canopyctl logout --local'
    sign_in
    begin_rotation
    user 'systemctl --user stop --no-block canopyd.socket canopyd.service'
    sleep 3
    same "$(user 'systemctl --user is-active canopyd.service || :')" deactivating "canopyd.service"
    admin POST release '{}' >/dev/null
    within 20 eval 'same "$(user "systemctl --user is-active canopyd.service || :")" inactive "canopyd.service"'
    user 'systemctl --user start canopyd.socket'
    same "$(generation)" $((before + 1)) "the generation"
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "a stop in the middle of a rotation waits until it is stored" stop_waits

kill_leaves_exchange() {
    local before process
    begin_rotation
    process=$(exchange)
    [ -n "$process" ]
    root "kill -9 $(main_process)"
    sleep 2
    same "$(exchange)" "$process" "the exchange"
    admin POST release '{}' >/dev/null
    within 20 eval 'same "$(generation)" $((before + 1)) "the generation"'
    same "$(state)" active "the state"
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "canopyd killed with -9 in the middle of one: the manager leaves the exchange to finish it" kill_leaves_exchange

restart_by_hand() {
    local before
    before=$(main_process)
    user 'systemctl --user restart canopyd.service'
    restarted "$before"
    within 10 eval 'same "$(stored_descriptors)" 1 "the number of descriptors in the store"'
    same "$(state)" active "the state"
}
check "a restart leaves one slot for each profile, and no more" restart_by_hand

stops_clean() {
    local before
    before=$(generation)
    user 'systemctl --user stop canopyd.service'
    same "$(stored_descriptors)" 0 "the number of descriptors in the store of a stopped service"
    same "$(generation)" "$before" "the generation that is served once its socket started it"
    within 10 eval 'same "$(stored_descriptors)" 1 "the number of descriptors in the store"'
}
check "a stop with nothing to store leaves nothing in the store, and the socket starts it again" stops_clean

# The doctor's verdict on the unit, and what it says: unit_finding verdict.
unit_finding() {
    user 'CANOPY_URL=http://127.0.0.1:8080 canopyctl doctor --json || :' | python3 -c '
import json, sys
for finding in json.load(sys.stdin)["findings"]:
    if finding["check"] == "unit": print(finding.get(sys.argv[1], ""))' "$1"
}

doctor_mends() {
    same "$(unit_finding verdict)" ok "the verdict on the unit as it is shipped"
    # Nobody tells canopyd that what it gives is thrown away.
    user 'mkdir -p ~/.config/systemd/user/canopyd.service.d
    printf "[Unit]\nStartLimitIntervalSec=10\n[Service]\nFileDescriptorStoreMax=0\nKillMode=mixed\nOOMPolicy=stop\nTimeoutStopSec=20\n" \
        >~/.config/systemd/user/canopyd.service.d/test.conf'
    # Older managers do not see files that are new.
    if [ "$version" -ge 257 ]; then
        contains "$(unit_finding detail)" "have changed"
        same "$(unit_finding verdict)" failed "the verdict on files that the manager has not read"
    fi
    user 'systemctl --user daemon-reload; systemctl --user restart canopyd.service'
    same "$(stored_descriptors)" 0 "the number of descriptors in the store"
    local part detail
    detail=$(unit_finding detail)
    for part in FileDescriptorStoreMax=0 KillMode=mixed OOMPolicy=stop TimeoutStopSec=20s StartLimitIntervalSec=10s \
        canopyd.service.d/test.conf; do
        contains "$detail" "$part"
    done
    # What mends it is typed as it is printed.
    user "$(unit_finding fix)"
    within 10 eval 'same "$(unit_finding verdict)" ok "the verdict after the cure"'
    same "$(stored_descriptors)" 1 "the number of descriptors in the store"
    user 'rm -r ~/.config/systemd/user/canopyd.service.d; systemctl --user daemon-reload; systemctl --user restart canopyd'
}
check "the doctor finds what a drop-in breaks, and its command mends all of it" doctor_mends

gone_with_sign_out() {
    user 'canopyctl logout'
    within 10 eval 'same "$(stored_descriptors)" 0 "the number of descriptors in the store"'
}
check "a sign-out takes the slot out of the store" gone_with_sign_out
