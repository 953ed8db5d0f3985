# A machine with nobody in front of it: `canopyctl setup-headless`, and what it lives through. Read by
# scripts/systemd-test. docs.bash runs what docs/headless.md says.

token_digest() { user 'canopyctl token' | sha256sum; }
setup() { root "PATH=/home/canopy/.local/bin:\$PATH canopyctl setup-headless --user canopy $*"; }

dry_run() {
    local before words
    before=$(root 'find /etc /home/canopy -newer /etc/machine-id -type f | sort | md5sum')
    words=$(setup)
    contains "$words" "---- Root's part"
    contains "$words" "---- The user's part"
    contains "$words" "loginctl enable-linger"
    same "$(root 'find /etc /home/canopy -newer /etc/machine-id -type f | sort | md5sum')" "$before" \
        "what is in /etc and the home directory"
    # It is a script.
    user 'canopyctl setup-headless | sh -n'
    # TPM or host key: the choice is told with its price.
    contains "$(setup --seal-with tpm2)" "power cuts"
}
check "without --apply it prints a script in two parts, and changes nothing" dry_run

files_are_ours() {
    local file
    for file in canopyd-keyring@.service org.freedesktop.secrets.service org.gnome.keyring.service \
        gnome-keyring-daemon.service.d/50-canopyd-headless.conf; do
        # Without the here-document's own end.
        setup | python3 -c '
import sys
sys.exit(open(sys.argv[1]).read() not in sys.stdin.read())' "systemd/headless/$file" || {
            echo "canopyctl has another systemd/headless/$file"
            return 1
        }
    done
}
check "the files that canopyctl brings along are those of systemd/headless" files_are_ours

existing_keyring() {
    local words
    root 'rm -f /etc/credstore.encrypted/*'
    words=$(setup --apply 2>&1) && return 1
    contains "$words" "--passphrase-stdin"
    root 'ls /etc/credstore.encrypted' | grep -q . && return 1
    root 'cat /run/canopyd-keyring-4242/passphrase' >"$MACHINE/passphrase"
    user 'systemctl --user stop gnome-keyring-daemon.service'
    setup --apply --passphrase-stdin <"$MACHINE/passphrase"
    user 'canopyctl setup-headless --apply'
    user 'secret-tool store --label=test check passphrase <<<right'
    scripts/machine reboot
    same "$(user 'secret-tool lookup check passphrase')" right "what the old keyring holds, after a boot"
}
check "a keyring that exists is opened with its own password, and not replaced" existing_keyring

undo() {
    user 'canopyctl setup-headless --undo --apply'
    setup --undo --apply
    same "$(root 'ls /etc/credstore.encrypted /etc/systemd/system/canopyd-keyring* 2>/dev/null' || :)" \
        "/etc/credstore.encrypted:" "what is left"
    user 'find ~/.config/systemd/user ~/.local/share/dbus-1 -name "*headless*" -o -name "org.*"' |
        grep . && return 1
    user 'rm -rf ~/.local/share/keyrings'
    root 'loginctl disable-linger canopy'
}
check "--undo takes both parts back" undo

users_part_first() {
    local words
    words=$(user 'canopyctl setup-headless --apply' 2>&1) && return 1
    contains "$words" "root's part comes first"
}
check "the user's part says so if root's has not been done" users_part_first

apply() {
    setup --apply
    same "$(root 'loginctl show-user canopy -P Linger')" yes "lingering"
    user 'canopyctl setup-headless --apply'
    within 20 eval 'user "canopyctl status >/dev/null"'
    same "$(root 'stat -c "%a %U" /etc/credstore.encrypted /run/canopyd-keyring-4242/passphrase')" \
        $'700 root\n600 canopy' "modes and owners of store and passphrase"
    # Both parts once more change nothing.
    setup --apply
    user 'canopyctl setup-headless --apply'
    start_sandbox 3600
    sign_in
    same "$(state)" active "the state"
}
check "root's part, then the user's, twice: lingering, sealed, unlocked, and a sign-in works" apply

# What the doctor says of how the keyring is opened: unsealing verdict.
unsealing() {
    user 'CANOPY_URL=http://127.0.0.1:8080 canopyctl doctor --json || :' | python3 -c '
import json, sys
for finding in json.load(sys.stdin)["findings"]:
    if finding["check"] == "unsealing": print(finding.get(sys.argv[1], ""))' "$1"
}

doctor_names_path() {
    same "$(unsealing verdict)" ok "the verdict on how the keyring is opened"
    contains "$(unsealing detail)" "canopyd-keyring@4242.service"
    # The user's own manager is asked for no credential: up to systemd 257 it can unseal none.
    ! user 'systemctl --user cat gnome-keyring-daemon.service canopyd.service' | grep -i credential
}
check "E04: the doctor says that the system's unit unsealed the passphrase, and no unit of the user's" doctor_names_path

# Milliseconds from the machine's start to the first token.
boot_to_token() {
    local began=${EPOCHREALTIME/./} digest
    scripts/machine "$1"
    within 30 eval 'user "canopyctl token >/dev/null"'
    echo $(((${EPOCHREALTIME/./} - began) / 1000))
}

reboots() {
    local generation took
    generation=$(user 'canopyctl token --json' | value generation)
    took=$(boot_to_token reboot)
    echo "$took ms from the order to reboot to the token" >>"$MACHINE/figures"
    # A token of another boot is not trusted: the first thing is a rotation.
    same "$(user 'canopyctl token --json' | value generation)" $((generation + 1)) "the generation"
    same "$(state)" active "the state"
}
check "H09: an orderly reboot: a token with nobody there" reboots

cut() {
    local took
    took=$(boot_to_token cut)
    echo "$took ms from a power cut to the token" >>"$MACHINE/figures"
    same "$(state)" active "the state"
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "H09: a power cut: a token with nobody there" cut

boot_time() {
    local kernel ready
    ready=$(user 'systemctl --user show --value -p ActiveEnterTimestampMonotonic canopyd.service')
    kernel=$(root 'systemctl show --value -p UserspaceTimestampMonotonic')
    echo "canopyd was ready $(((ready - kernel) / 1000)) ms after the first process" >>"$MACHINE/figures"
    [ "$ready" -gt "$kernel" ]
}
check "canopyd is started at boot, and not by the first request" boot_time

keyring_killed() {
    local keyring
    keyring=$(user 'systemctl --user show --value -p MainPID gnome-keyring-daemon.service')
    root "kill -9 $keyring"
    within 20 eval '[ "$(user "systemctl --user show --value -p MainPID gnome-keyring-daemon.service")" -gt 0 ]'
    within 30 eval 'user "canopyctl refresh >/dev/null" && same "$(state)" active "the state"'
    # Not one that the bus started, locked, in between.
    same "$(user 'busctl --user status org.freedesktop.secrets' | sed -n 's/^UserUnit=//p')" \
        gnome-keyring-daemon.service "the unit of the Secret Service"
}
check "E10: a keyring that was killed comes back unlocked, whoever asks for it first" keyring_killed

foreign_keyring() {
    # As the bus would start it: locked, and in possession of the name.
    user 'systemctl --user stop gnome-keyring-daemon.service
    systemd-run --user --quiet --unit=foreign /usr/bin/gnome-keyring-daemon --foreground --components=secrets \
        --control-directory=$XDG_RUNTIME_DIR/foreign'
    within 10 eval 'same "$(user "busctl --user status org.freedesktop.secrets" | sed -n "s/^UserUnit=//p")" \
        foreign.service "the unit of the Secret Service"'
    user 'systemctl --user start gnome-keyring-daemon.service'
    same "$(user 'busctl --user status org.freedesktop.secrets' | sed -n 's/^UserUnit=//p')" \
        gnome-keyring-daemon.service "the unit of the Secret Service"
    within 30 eval 'user "canopyctl refresh >/dev/null" && same "$(state)" active "the state"'
}
check "E10: a locked keyring that was there first gives way" foreign_keyring

bad_blob() {
    root 'cp -a /etc/credstore.encrypted/canopyd-keyring-4242 /root/blob
    echo AAAA >/etc/credstore.encrypted/canopyd-keyring-4242'
    scripts/machine reboot
    same "$(root 'systemctl is-active user@4242.service')" active "the user manager"
    same "$(root 'systemctl is-failed canopyd-keyring@4242.service')" failed "what unseals"
    within 30 eval 'contains "$(status_line)" "keyring_locked: default"'
    same "$(state)" keyring_locked "the state"
}
check "a bad blob: the user manager comes up, and the status says keyring_locked" bad_blob

missing_blob() {
    root 'rm /etc/credstore.encrypted/canopyd-keyring-4242'
    scripts/machine reboot
    same "$(root 'systemctl is-active user@4242.service')" active "the user manager"
    within 30 eval 'same "$(state)" keyring_locked "the state"'
    same "$(unsealing verdict)" failed "the verdict on how the keyring is opened"
    # Mended, without a reboot, by what the doctor prints; its sudo is root's here.
    root 'cp -a /root/blob /etc/credstore.encrypted/canopyd-keyring-4242'
    local fix
    fix=$(unsealing fix)
    root "$(sed 's/^sudo //; s/ && .*//' <<<"$fix")"
    user "${fix#* && }"
    within 30 eval 'same "$(state)" active "the state"'
}
check "no blob: the same, and it goes on once there is one" missing_blob

without_linger() {
    root 'loginctl disable-linger canopy'
    root 'loginctl terminate-user canopy 2>/dev/null || :
    systemctl stop user@4242.service'
    # Nobody is logged in and nobody lingers: nothing runs.
    root 'systemctl is-active user@4242.service' && return 1
    root 'loginctl enable-linger canopy'
    within 30 eval 'root "test -S /run/user/4242/bus"'
    within 30 eval 'same "$(state)" active "the state"'
}
check "E01: without lingering nothing runs; with it again, a token is there with no login" without_linger

over_ssh() {
    # A login as it comes in: by sshd and pam_systemd, with no variable set by us.
    [ -x "$MACHINE/root/usr/sbin/sshd" ] || install_in_machine openssh-server
    root '
    ssh-keygen -q -t ed25519 -N "" -f /root/key
    install -d -o canopy -g canopy -m 700 /home/canopy/.ssh
    install -o canopy -g canopy -m 600 /root/key.pub /home/canopy/.ssh/authorized_keys
    mkdir -p /run/sshd
    ssh-keygen -A >/dev/null
    systemd-run --quiet --unit=sshd-test /usr/sbin/sshd -D -p 2222 -o UsePAM=yes
    for try in $(seq 50); do ssh-keyscan -p 2222 127.0.0.1 2>/dev/null | grep -q . && break; sleep 0.1; done'
    user 'canopyctl logout --local'
    root 'cp /opt/canopyd/Tests/Systemd/ssh-login.py /root/
    python3 /root/ssh-login.py ssh -tt -q -i /root/key -o StrictHostKeyChecking=no -p 2222 canopy@127.0.0.1 \
        ".local/bin/canopyctl login --url http://127.0.0.1:8080 --key pk_sandbox_native --email ada@example.com" \
        <<<"correct horse battery staple"'
    same "$(state)" active "the state"
    # E07: from a further login, with an empty environment.
    root 'ssh -q -i /root/key -o StrictHostKeyChecking=no -p 2222 canopy@127.0.0.1 \
        "env -i .local/bin/canopyctl status"' | grep -q ada@example.com
}
check "E07: signed in over ssh, at a prompt; a later login finds the socket with no variable set" over_ssh

from_credential() {
    user 'canopyctl logout'
    root 'printf "%s\n" "correct horse battery staple" |
        systemd-creds encrypt --name=canopy-password - /etc/credstore.encrypted/canopy-password 2>/dev/null
    systemd-run --quiet --wait --pipe --collect --property=User=canopy \
        --property=LoadCredentialEncrypted=canopy-password:/etc/credstore.encrypted/canopy-password \
        --setenv=XDG_RUNTIME_DIR=/run/user/4242 \
        sh -c "exec /home/canopy/.local/bin/canopyctl login --url http://127.0.0.1:8080 \
            --key pk_sandbox_native --email ada@example.com --password-stdin \
            <\"\$CREDENTIALS_DIRECTORY/canopy-password\""'
    same "$(state)" active "the state"
}
check "signed in from a sealed credential of the system's, the password in no file" from_credential

sealed_by_user() {
    # By the user, for the user, and root is not asked: systemd-creds has its service do it.
    user 'canopyctl logout
    printf "%s\n" "correct horse battery staple" | systemd-creds --user encrypt --name=canopy-password - ~/password.cred
    systemd-creds --user decrypt --name=canopy-password ~/password.cred - |
        canopyctl login --url http://127.0.0.1:8080 --key pk_sandbox_native --email ada@example.com --password-stdin'
    same "$(state)" active "the state"
    # What the recipe does without, since it fails: the day that it works, the recipe can be shorter.
    user 'systemd-run --user --quiet --wait --pipe --collect \
        --property=LoadCredentialEncrypted=canopy-password:$HOME/password.cred true' && {
        echo "a unit of the user unseals a credential: say so in docs/headless.md"
        [ "$(systemd_version)" -ge 258 ]
    }
    rm -f "$MACHINE/root/home/canopy/password.cred"
}
systemd_version() { root 'systemctl --version' | sed -n 's/^systemd \([0-9]*\).*/\1/p'; }
if [ "$(systemd_version)" -ge 256 ]; then
    check "E04: signed in from a credential that the user sealed, through the service of systemd-creds" sealed_by_user
fi

killed_at_logout() {
    # E02: some managers are killed at logout, lingering or not.
    local turn
    for turn in 1 2 3; do
        user 'canopyctl refresh --timeout 0 >/dev/null 2>&1' || :
        root 'systemctl kill --signal=KILL --kill-whom=all user@4242.service'
        within 20 eval '! root "pgrep -u canopy -x canopyd >/dev/null"'
        root 'systemctl restart user@4242.service'
        within 30 eval 'user "canopyctl token >/dev/null"'
    done
    same "$(state)" active "the state"
    same "$(counted identity_revocations)" 0 "the number of identities revoked"
}
check "E02: the whole user manager killed with -9, in the middle of rotations: still signed in" killed_at_logout

[ ! -f "$MACHINE/figures" ] || sed 's/^/        /' "$MACHINE/figures"
