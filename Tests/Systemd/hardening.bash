# The sandbox of canopyd.service: what it forbids is forbidden, what canopyd needs is not. Read by
# scripts/systemd-test.

probe() {
    user 'systemctl --user enable --now canopyd.socket canopyd-credential.socket'
    root 'echo secret >/tmp/canopyd-marker; chmod 644 /tmp/canopyd-marker'
    user 'mkdir -p ~/.config/systemd/user/canopyd.service.d
    printf "[Service]\nExecStartPost=/bin/sh -c \"python3 /opt/canopyd/Tests/Systemd/hardening-probe.py >%%t/probe-report 2>&1\"\n" \
        >~/.config/systemd/user/canopyd.service.d/probe.conf
    systemctl --user daemon-reload
    systemctl --user restart canopyd.service
    mv $XDG_RUNTIME_DIR/probe-report ~/probe-report
    rm ~/.config/systemd/user/canopyd.service.d/probe.conf
    systemctl --user daemon-reload'
}
check "a probe runs in the unit's sandbox" probe

# Lines of the probe's; each has to be there just so.
found() {
    local words line
    words=$(user 'cat ~/probe-report')
    for line in "$@"; do
        grep -qxF -e "$line" <<<"$words" || {
            echo "not '$line', but: $(grep -e "^${line%% *} " <<<"$words" || echo "$words")"
            return 1
        }
    done
}

files() {
    found "write-home EROFS" "write-data EROFS" "write-usr EROFS" "write-state allowed" \
        "write-runtime allowed" "see-tmp ENOENT" "read-configuration allowed"
}
check "ProtectSystem=, ProtectHome=, PrivateTmp=: it writes state and runtime directory, and nothing else" files

# ProtectProc= cannot be seen at work: see the unit.
kernel() {
    found "tunables read-only" "control-groups read-only" "read-kernel-log ENOENT" \
        "devices null" "host-name EPERM" "clock EPERM" \
        "mount EPERM" "new-namespace EPERM" "realtime EPERM"
}
check "PrivateDevices= and Protect…=: the kernel's settings, clock, and devices are out of reach" kernel

mounts() {
    local own
    own=$(root "readlink /proc/$(main_process)/ns/mnt")
    [ "$own" != "$(root 'readlink /proc/1/ns/mnt')" ] || {
        echo "it is the machine's: $own"
        return 1
    }
}
check "PrivateMounts=: its mounts are no others'" mounts

process() {
    # From systemd 254 on the kernel itself refuses that, and not the filter of calls, with another word.
    local writable=EPERM
    [ "$(root 'systemctl --version' | sed -n 's/^systemd \([0-9]*\).*/\1/p')" -lt 254 ] || writable=EACCES
    found "no-new-privileges 1" "capabilities 0" "user-namespace 4242 4242 1" "core-bytes 0" \
        "umask 0o77" "ptrace EPERM" "personality EPERM" "priority EPERM" \
        "writable-code $writable" "setuid-file EPERM"
}
check "no privileges, no core, no writable code, no calls that it needs not" process

sockets() {
    found "internet-socket allowed" "packet-socket EAFNOSUPPORT" "vsock-socket EAFNOSUPPORT"
}
check "RestrictAddressFamilies=: no sockets but local ones and those to the server" sockets

exposure() {
    local words
    words=$(user 'systemd-analyze --user --no-pager security canopyd.service')
    words=${words##*Overall exposure level for canopyd.service: }
    echo "$words"
    # The figure is one of 252's rules; later ones ask for more.
    [ "$(root 'systemctl --version' | awk 'NR == 1 { print $2 }')" -gt 252 ] ||
        awk '{ exit !($1 <= 1.7) }' <<<"$words"
}
check "systemd-analyze security rates it 1.7 at most" exposure

works_inside() {
    local before
    start_sandbox 900
    user 'canopyctl logout --local 2>/dev/null || :'
    sign_in
    before=$(user 'canopyctl token --json' | value generation)
    user 'canopyctl refresh'
    same "$(user 'canopyctl token --json' | value generation)" $((before + 1)) "the generation"
    user 'canopyctl whoami' | grep -q ada@example.com
    same "$(counted family_revocations)" 0 "the number of families revoked"
    # The very processes, and not some others: the kernel's word on what they run under.
    same "$(root "awk '/^(NoNewPrivs|Seccomp):/ { print \$2 }' /proc/$(main_process)/status | tr '\n' ' '")" \
        "1 2 " "NoNewPrivs and Seccomp"
}
check "exchange and keyring work inside: sign-in, rotation, a question to the server" works_inside

makes_socket_again() {
    local before
    before=$(user 'stat -c %i $XDG_RUNTIME_DIR/canopyd/agent.sock')
    # It may be made again before the directory, too, is gone, which then stays.
    user 'rm -r $XDG_RUNTIME_DIR/canopyd || :'
    within 10 eval 'user "canopyctl status >/dev/null"'
    [ "$(user 'stat -c %i $XDG_RUNTIME_DIR/canopyd/agent.sock')" != "$before" ]
    user 'systemctl --user stop canopyd.service
    systemctl --user restart canopyd.socket canopyd-credential.socket'
}
check "a socket whose path was removed is made again, inside the sandbox too" makes_socket_again

state_directory_missing() {
    user 'systemctl --user stop canopyd.service
    mv ~/.local/state/canopyd ~/state-away
    canopyctl status >/dev/null
    stat -c %a ~/.local/state/canopyd' | grep -qx 700
    user 'systemctl --user stop canopyd.service
    rm -r ~/.local/state/canopyd
    mv ~/state-away ~/.local/state/canopyd
    systemctl --user start canopyd.service'
}
check "on a home where nothing was signed in yet, the state directory is made first" state_directory_missing
