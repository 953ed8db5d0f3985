# A passphrase sealed by a TPM: a software one, as the machine's own. Read by scripts/systemd-test.

# The manager and systemd-creds find the TPM by this variable; a real one is found without.
tpm_variable="SYSTEMD_TPM2_DEVICE=swtpm:path=/opt/tpm/tpm"
setup() { root "$tpm_variable PATH=/home/canopy/.local/bin:\$PATH canopyctl setup-headless --user canopy $*"; }

# Each start is a power cycle of the TPM's.
start_tpm() {
    end_tpm
    mkdir -p "$MACHINE/tpm-state" "$MACHINE/tpm"
    [ -f "$MACHINE/tpm-state/tpm2-00.permall" ] ||
        swtpm_setup --tpm2 --tpm-state "$MACHINE/tpm-state" --pcr-banks sha256 >/dev/null
    swtpm socket --tpm2 --tpmstate "dir=$MACHINE/tpm-state" --flags startup-clear \
        --server "type=unixio,path=$MACHINE/tpm/tpm" \
        --ctrl "type=unixio,path=$MACHINE/tpm/tpm.ctrl" >"$MACHINE/tpm.log" 2>&1 </dev/null &
    echo $! >"$MACHINE/tpm-process"
    within 10 test -S "$MACHINE/tpm/tpm"
}
end_tpm() {
    local process
    [ -f "$MACHINE/tpm-process" ] || return 0
    process=$(cat "$MACHINE/tpm-process")
    rm "$MACHINE/tpm-process"
    kill "$process" 2>/dev/null || :
    while [[ $(ps -o stat= -p "$process") == [!Z]* ]]; do sleep 0.02; done
    rm -f "$MACHINE/tpm/tpm" "$MACHINE/tpm/tpm.ctrl"
}
end_background() { end_tpm; }
MACHINE_OPTIONS+=" --bind=$MACHINE/tpm:/opt/tpm --setenv=$tpm_variable"

no_libraries() {
    local output status=0
    start_tpm
    user 'rm -rf ~/.local/share/keyrings'
    root 'rm -f /etc/credstore.encrypted/*
    for library in /usr/lib/*/libtss2-esys.so.0; do mv $library $library.away; done'
    output=$(setup --apply --seal-with tpm2 2>&1) || status=$?
    root 'for library in /usr/lib/*/libtss2-esys.so.0.away; do mv $library ${library%.away}; done'
    same $status 1 "its exit status"
    contains "$output" "apt-get install libtss2-esys-3.0.2-0 libtss2-rc0"
    same "$(root 'ls /etc/credstore.encrypted')" "" "what was sealed"
}
check "without the libraries that systemd talks to a TPM with, --seal-with tpm2 says which packages have them" no_libraries

sealed() {
    start_tpm
    root 'rm -f /etc/credstore.encrypted/*'
    user 'rm -rf ~/.local/share/keyrings'
    scripts/machine reboot
    setup --apply --seal-with tpm2
    user 'canopyctl setup-headless --apply'
    # Nothing but the TPM opens it: the host's key is not enough.
    root 'systemd-creds decrypt --name=canopyd-keyring-4242 /etc/credstore.encrypted/canopyd-keyring-4242 - >/dev/null 2>&1' &&
        return 1
    root "$tpm_variable systemd-creds decrypt --name=canopyd-keyring-4242 \
        /etc/credstore.encrypted/canopyd-keyring-4242 - 2>/dev/null" | grep -q .
    start_sandbox 3600
    sign_in
    same "$(state)" active "the state"
}
check "--seal-with tpm2 seals the passphrase with the TPM, and with nothing else" sealed

boots() {
    start_tpm
    scripts/machine reboot
    within 30 eval 'same "$(state)" active "the state"'
}
check "a boot unseals it: a token with nobody there" boots

no_tpm() {
    end_tpm
    scripts/machine reboot
    same "$(root 'systemctl is-active user@4242.service')" active "the user manager"
    within 30 eval 'same "$(state)" keyring_locked "the state"'
    # As a TPM that had locked itself does after a while.
    start_tpm
    root 'systemctl restart canopyd-keyring@4242.service'
    user 'systemctl --user restart gnome-keyring-daemon.service'
    within 30 eval 'same "$(state)" active "the state"'
}
check "with a TPM that does not answer the machine comes up, keyring_locked, and goes on once it does" no_tpm
