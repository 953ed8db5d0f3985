# canopyd.service and canopyd.socket: started by activation, known to be ready, watched, reloaded,
# stopped and started again. Read by scripts/systemd-test.

# A drop-in of the user's for canopyd.service, with the text of $1.
override() {
    user "mkdir -p ~/.config/systemd/user/canopyd.service.d
    cat >~/.config/systemd/user/canopyd.service.d/test.conf
    systemctl --user daemon-reload" <<<"$1"
}
without_override() {
    user 'rm -f ~/.config/systemd/user/canopyd.service.d/test.conf
    systemctl --user daemon-reload'
}
ask() { user 'curl -fsS --max-time 120 --unix-socket $XDG_RUNTIME_DIR/canopyd/agent.sock http://canopyd/v1/status'; }
is_active() { same "$(user 'systemctl --user is-active canopyd.service || :')" active "canopyd.service"; }

units_are_sound() {
    local words
    words=$(user 'cd ~/.config/systemd/user
    systemd-analyze --user verify canopyd.service canopyd.socket canopyd-credential.socket 2>&1' |
        # Of systemd 254 and later, as the unit says.
        grep -vE "Unknown key( name)? '(RestartSteps|RestartMaxDelaySec|FileDescriptorStorePreserve)'") || :
    same "$words" "" "what systemd has to say"
}
check "systemd has nothing to say against the units" units_are_sound

socket_activates() {
    user 'systemctl --user enable --now canopyd.socket canopyd-credential.socket'
    same "$(user 'systemctl --user is-active canopyd.service || :')" inactive "canopyd.service"
    same "$(user 'stat -c %a-%a $XDG_RUNTIME_DIR/canopyd $XDG_RUNTIME_DIR/canopyd/*.sock')" \
        $'700-700\n600-600\n600-600' "the modes of directory and sockets"
    ask | value version
    is_active
}
check "the first request starts canopyd and is answered" socket_activates

both_sockets() {
    local names
    names=$(root "tr '\\0' '\\n' </proc/$(main_process)/environ | sed -n 's/^LISTEN_FDNAMES=//p'" |
        tr : '\n' | sort | tr '\n' ' ')
    same "$names" "agent credential " "what canopyd was passed"
}
check "it is passed both sockets by their names" both_sockets

odd_socket() {
    local words
    user 'systemctl --user stop canopyd.service canopyd.socket
    mkdir -p ~/.config/systemd/user/canopyd.socket.d
    printf "[Socket]\nFileDescriptorName=other\n" >~/.config/systemd/user/canopyd.socket.d/test.conf
    systemctl --user daemon-reload
    systemctl --user start canopyd.socket
    systemctl --user start canopyd.service' && return 1
    words=$(canopyd_journal -n 20 -o cat
    user 'systemctl --user stop canopyd.service canopyd.socket
    rm -r ~/.config/systemd/user/canopyd.socket.d
    systemctl --user daemon-reload
    systemctl --user reset-failed canopyd.service || :
    systemctl --user start canopyd.socket')
    contains "$words" "other"
    contains "$words" "FileDescriptorName="
}
check "a socket of another name is refused, and the unit's mistake is named" odd_socket

ready_means_ready() {
    # Started by hand, so that nothing waits in a socket's queue: what start returns from must answer.
    local turn
    user 'systemctl --user stop canopyd.service canopyd.socket canopyd-credential.socket'
    for turn in $(seq 10); do
        user 'systemctl --user start canopyd.service
        curl -fsS --unix-socket $XDG_RUNTIME_DIR/canopyd/agent.sock http://canopyd/v1/status >/dev/null
        systemctl --user stop canopyd.service' || {
            echo "in turn $turn"
            return 1
        }
    done
    user 'systemctl --user start canopyd.socket canopyd-credential.socket'
}
check "H10: READY=1 comes once the socket answers, 10 times of 10" ready_means_ready

# Milliseconds from canopyd's last line of one kind to its last of another, by its own clock: what a busy machine
# takes to start a process, or the manager to hear of its end, is not canopyd's.
between_lines() {
    local to=$2
    canopyd_journal "CANOPYD_EVENT=$1" "CANOPYD_EVENT=$to" -n 2 -o json |
        python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
if [line["CANOPYD_EVENT"] for line in lines] != sys.argv[1:]: sys.exit(f"the lines are {lines}")
began, ended = (int(line["_SOURCE_REALTIME_TIMESTAMP"]) for line in lines)
print((ended - began) // 1000)' "$1" "$to"
}
# How long the last stop took of what is canopyd's.
stop_took() { between_lines stopping stopped; }

keyring_hangs() {
    local keyring took
    keyring=$(user 'systemctl --user show --value -p MainPID gnome-keyring-daemon.service')
    root "kill -STOP $keyring"
    # Answered and stopped while it hangs: neither waits for it.
    { ask >/dev/null && is_active && user 'systemctl --user stop canopyd.service'; } || {
        root "kill -CONT $keyring"
        return 1
    }
    same "$(root "sed 's/.*) \\(.\\) .*/\\1/' /proc/$keyring/stat")" T "the keyring's state"
    root "kill -CONT $keyring"
    took=$(stop_took)
    echo "stopped after $took ms"
    [ "$took" -lt 2000 ]
}
check "D02: while the keyring hangs it is ready, answers, and stops within 2 s" keyring_hangs

status_is_true() {
    start_sandbox 900
    ask >/dev/null
    within 10 eval 'contains "$(status_line)" "nothing is signed in"'
    sign_in
    within 10 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
    lock_keyring
    # A rotation finds it locked; the token in hand is good.
    user 'canopyctl refresh' && return 1
    within 10 eval 'contains "$(status_line)" "keyring_locked: default"'
    same "$(state)" keyring_locked "the state"
    unlock_keyring
    within 10 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
    server_away
    user 'canopyctl refresh' && return 1
    within 10 eval 'contains "$(status_line)" "degraded: default"'
    same "$(state)" degraded "the state"
    server_back
    within 20 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
}
check "H02: systemctl status says what canopyctl status says: nothing, active, locked, degraded" status_is_true

reload_works() {
    local before
    before=$(main_process)
    user 'mkdir -p ~/.config/canopyd
    printf "[log]\nLevel=debug\n" >~/.config/canopyd/canopyd.conf
    systemctl --user reload canopyd.service'
    within 10 eval 'contains "$(canopyd_journal -n 50 -o cat)" "The configuration was read again"'
    within 10 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
    same "$(main_process)" "$before" "the process"
}
check "a reload reads the configuration, keeps the process, and STATUS stays true" reload_works

bad_reload() {
    user 'printf "[log]\nLevel=loud\n" >~/.config/canopyd/canopyd.conf'
    user 'systemctl --user reload canopyd.service' && return 1
    within 10 eval 'contains "$(canopyd_journal -n 20 -o cat)" "loud"'
    is_active
    user 'rm ~/.config/canopyd/canopyd.conf'
}
check "a reload of a bad configuration fails, says why, and changes nothing" bad_reload

request_outlives_bad_start() {
    user 'systemctl --user stop canopyd.service
    printf "[log]\nLevel=loud\n" >~/.config/canopyd/canopyd.conf
    { sleep 2.5; rm ~/.config/canopyd/canopyd.conf; } >/dev/null 2>&1 &
    curl -fsS --max-time 120 --unix-socket $XDG_RUNTIME_DIR/canopyd/agent.sock http://canopyd/v1/status'
    is_active
}
check "a request that came while canopyd could not start is answered once it can" request_outlives_bad_start

stops_quickly() {
    local took
    is_active
    within 20 eval '[ "$(root "ps --ppid $(main_process) -o pid= | wc -l")" -eq 0 ]'
    user 'systemctl --user stop canopyd.service'
    took=$(stop_took)
    echo "$took ms"
    [ "$took" -lt 2000 ]
    same "$(user 'systemctl --user show --value -p Result canopyd.service')" success "the result"
}
check "an idle canopyd stops within 2 s" stops_quickly

# Whether another process than $1 is there, and ready. Between two there is none, which is no other.
restarted_since() {
    local present
    is_active && present=$(main_process) && [ "$present" != "$1" ]
}

comes_back() {
    local before
    ask >/dev/null
    before=$(main_process)
    root "kill -9 $before"
    within 20 restarted_since "$before"
    ask | value version
}
check "killed with -9, it is started again" comes_back

comes_back_for_ever() {
    # More often than the manager's own limit of 5 times in 10 s would allow.
    local turn before
    override $'[Service]\nRestartSec=100ms'
    for turn in $(seq 7); do
        before=$(main_process)
        root "kill -9 $before"
        within 20 restarted_since "$before"
    done
}
check "and no matter how often" comes_back_for_ever

# Whether canopyd outlives more than twice the patience of a watchdog that bites after 2 s.
outlives_watchdog() {
    local before
    before=$(main_process) || return
    sleep 5
    same "$(main_process)" "$before" "the process after 5 s"
}

watchdog_is_fed() {
    local turn
    override $'[Service]\nWatchdogSec=2'
    user 'systemctl --user restart canopyd.service'
    # A canopyd that does not feed it outlives no such time. One that does may be kept waiting by a busy machine for as
    # long as the watchdog waits: once in three must be quiet enough.
    for turn in 1 2 3; do
        within 20 is_active
        ! outlives_watchdog || return 0
    done
    return 1
}
check "the event loop feeds the watchdog while there is nothing to do" watchdog_is_fed

watchdog_bites() {
    local before
    override $'[Service]\nWatchdogSec=1'
    user 'systemctl --user restart canopyd.service'
    before=$(main_process)
    root "kill -STOP $before"
    within 20 restarted_since "$before"
    contains "$(canopyd_journal -n 30 -o cat)" "result 'watchdog'"
    ask | value version
    without_override
    user 'systemctl --user restart canopyd.service'
    same "$(user 'systemctl --user show --value -p WatchdogUSec canopyd.service')" 5min "WatchdogSec"
}
check "a canopyd that is stuck is killed and started again" watchdog_bites

no_network_target() {
    grep -rn 'network[a-z-]*\.target' systemd/ --include='canopyd*' && return 1
    # The machine has no network but lo, and boots all the same.
    user 'systemctl --user enable canopyd.service'
    server_away
    scripts/machine reboot
    within 20 is_active
    within 20 eval 'contains "$(status_line)" "offline: default"'
    # As long as it would otherwise wait before it tries again: far longer than what follows takes.
    within 60 eval '[ "$(next_attempt)" -gt 5 ]'
    server_back
    scripts/machine network sh -c 'ip address add 10.11.12.13/24 dev lo && ip route add default dev lo'
    within 3 eval 'same "$(status_line)" "Serving; active: default" "STATUS"'
}
# Seconds until the daemon means to try again.
next_attempt() {
    user 'canopyctl status --json' | python3 -c '
import datetime, json, sys
at = json.load(sys.stdin)["profiles"][0]["refresh_at"]
now = datetime.datetime.now(datetime.timezone.utc)
print(int((datetime.datetime.fromisoformat(at.replace("Z", "+00:00")) - now).total_seconds()))'
}
check "E06: at boot without a network it starts, is offline, and refreshes with the first route" no_network_target
