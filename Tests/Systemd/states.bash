# H02: in every state, what systemctl, canopyctl, the metrics and the exit code say is the same. Read
# by scripts/systemd-test.

state_agrees() {
    local state=$1 code=$2 status=0 metrics
    same "$(user 'canopyctl status --json' | value profiles.0.state)" "$state" "the state"
    contains "$(status_line)" "$state: default"
    metrics=$(user 'curl -fsS --unix-socket $XDG_RUNTIME_DIR/canopyd/agent.sock http://canopyd/v1/metrics')
    contains "$metrics" "canopyd_profile_state{profile=\"default\",state=\"$state\"} 1"
    same "$(grep -c '^canopyd_profile_state{.*} 1$' <<<"$metrics")" 1 "the number of states in the metrics"
    user 'canopyctl token --timeout 1 >/dev/null 2>&1' || status=$?
    same "$status" "$code" "the exit code of canopyctl token"
}
# Within the time that anything may take, and all of it at once.
comes_to() { within 30 state_agrees "$@"; }
requests() { counted families.0.refresh_requests; }

active() {
    local before
    start_sandbox 900
    user 'systemctl --user enable --now canopyd.socket'
    sign_in
    comes_to active 0
    # Asking is not refreshing.
    before=$(requests)
    user 'for number in $(seq 20); do canopyctl status >/dev/null; done'
    same "$(requests)" "$before" "the number of refresh requests"
}
check "H02: active" active

degraded() {
    server_away
    user 'canopyctl refresh >/dev/null 2>&1' || :
    comes_to degraded 0
    server_back
    comes_to active 0
}
check "H02: degraded, with the server out of reach and the token good" degraded

refused() {
    admin POST faults '{"name":"echo-body","on":"refresh","count":1}' >/dev/null
    within 20 eval '! user "canopyctl refresh >/dev/null 2>&1"'
    # The token in hand is good still.
    contains "refused degraded" "$(state)"
    comes_to "$(state)" 0
    # What was answered with a refusal may have been presented: the next token would be held back.
    user 'canopyctl logout --local 2>/dev/null'
    sign_in
    comes_to active 0
}
check "H02: refused, by the server's own word" refused

locked() {
    lock_keyring
    within 20 eval '! user "canopyctl refresh >/dev/null 2>&1"'
    comes_to keyring_locked 0
    same "$(user 'canopyctl status --json' | value keyring.state)" locked "the keyring's state"
    unlock_keyring
    comes_to active 0
}
check "H02: keyring_locked, with the token good" locked

unavailable() {
    user 'mv ~/.local/share/dbus-1 ~/dbus-away
    busctl --user call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig
    systemctl --user stop gnome-keyring-daemon.service gnome-keyring-daemon.socket
    systemctl --user mask --runtime gnome-keyring-daemon.service'
    root 'mkdir -p /root/activation
    mv /usr/share/dbus-1/services/org.freedesktop.secrets.service /usr/share/dbus-1/services/org.gnome.keyring.service /root/activation'
    user 'busctl --user call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig'
    within 20 eval '! user "canopyctl refresh >/dev/null 2>&1"'
    comes_to keyring_unavailable 0
    user 'mv ~/dbus-away ~/.local/share/dbus-1
    systemctl --user unmask --runtime gnome-keyring-daemon.service'
    root 'mv /root/activation/* /usr/share/dbus-1/services'
    user 'busctl --user call org.freedesktop.DBus / org.freedesktop.DBus ReloadConfig
    systemctl --user start gnome-keyring-daemon.socket gnome-keyring-daemon.service'
    within 60 eval 'user "canopyctl refresh >/dev/null 2>&1" && state_agrees active 0'
}
check "H02: keyring_unavailable, with no Secret Service at all" unavailable

storage() {
    root 'chattr +i /home/canopy/.local/state/canopyd/* 2>/dev/null || chown -R root /home/canopy/.local/state/canopyd'
    within 20 eval '! user "canopyctl refresh >/dev/null 2>&1"'
    comes_to storage_failed 0
    root 'chattr -i /home/canopy/.local/state/canopyd/* 2>/dev/null || :
    chown -R canopy:canopy /home/canopy/.local/state/canopyd'
    within 60 eval 'user "canopyctl refresh >/dev/null 2>&1" && state_agrees active 0'
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "H02: storage_failed, with a state directory that cannot be written" storage

offline() {
    server_away
    # A token of another boot is not trusted.
    scripts/machine reboot
    user 'canopyctl status >/dev/null'
    comes_to offline 6
    server_back
    within 60 eval 'user "canopyctl token >/dev/null 2>&1" && state_agrees active 0'
}
check "H02: offline, with no token in hand" offline

signed_out() {
    admin POST revoke-identity '{"email":"ada@example.com"}' >/dev/null
    within 20 eval '! user "canopyctl refresh >/dev/null 2>&1"'
    comes_to signin_required 4
    same "$(user 'canopyctl status --json' | value profiles.0.reason)" revoked_or_expired "the reason"
    sign_in
    comes_to active 0
}
check "H02: signin_required, and active again with the next sign-in" signed_out
