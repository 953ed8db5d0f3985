# The server as it is on real machines: HTTPS with a CA of the company's, a name that is looked up, a
# proxy. stunnel and tinyproxy stand in the machine's network, and canopyd in its sandbox. Read by
# scripts/systemd-test.

configure() {
    user "mkdir -p ~/.config/canopyd
    cat >~/.config/canopyd/canopyd.conf
    systemctl --user restart canopyd.service" <<<"$1"
}
sign_in_at() {
    user "printf '%s\n' 'correct horse battery staple' |
        canopyctl login --url $1 --key pk_sandbox_native --email ada@example.com --password-stdin" 2>&1
}
# What is said of a sign-in that has to fail.
refused_at() {
    local words
    words=$(sign_in_at "$1") && { echo "signed in at $1" && return 1; }
    printf '%s\n' "$words"
}

certificates() {
    local directory=$MACHINE/tls
    mkdir "$directory"
    (
        cd "$directory"
        authority() {
            openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$2" -keyout "$1.key" -out "$1.pem"
        }
        # Signed by $2 for the name $3, valid in the time that the rest says.
        certificate() {
            local name=$1 by=$2 for=$3
            shift 3
            openssl req -newkey rsa:2048 -nodes -subj "/CN=$for" -keyout "$name.key" -out "$name.csr"
            touch "index.$by.txt"
            echo "subjectAltName=DNS:$for" >"$name.ext"
            openssl x509 -req -in "$name.csr" -CA "$by.pem" -CAkey "$by.key" -CAcreateserial \
                -extfile "$name.ext" -out "$name.pem" "$@"
            cat "$name.key" >>"$name.pem"
        }
        authority company "Company Root"
        authority stranger "Stranger Root"
        certificate good company auth.canopy.test -days 30
        certificate untrusted stranger auth.canopy.test -days 30
        certificate wrong company other.canopy.test -days 30
        # openssl dates what it signs by the clock.
        for time in expired=-400d early=+3d; do
            faketime -f "${time#*=}" openssl x509 -req -in good.csr -CA company.pem -CAkey company.key \
                -CAcreateserial -extfile good.ext -days 30 -out "${time%=*}.pem"
            cat good.key >>"${time%=*}.pem"
        done
    ) >/dev/null 2>&1
    install -Dm644 "$directory/company.pem" "$MACHINE/root/etc/ssl/company.pem"
    {
        echo "foreground = yes"
        echo "pid ="
        local port=8443 name
        for name in good untrusted expired wrong early; do
            printf '[%s]\naccept = 127.0.0.2:%s\nconnect = 127.0.0.1:8080\ncert = %s/%s.pem\n' \
                "$name" $port "$directory" "$name"
            port=$((port + 1))
        done
    } >"$directory/stunnel.conf"
    background stunnel stunnel4 "$directory/stunnel.conf"
    background names dnsmasq --keep-in-foreground --no-resolv --no-hosts --conf-file=/dev/null \
        --listen-address=127.0.0.1 --bind-interfaces --pid-file= --user=root \
        --address=/auth.canopy.test/127.0.0.2
    root 'rm -f /etc/resolv.conf
    echo "nameserver 127.0.0.1" >/etc/resolv.conf
    printf "Port 3128\nListen 127.0.0.1\nTimeout 60\nAllow 127.0.0.1\nConnectPort 8443\nMaxClients 20\n" \
        >/etc/tinyproxy-test.conf
    systemd-run --quiet --unit=proxy tinyproxy -d -c /etc/tinyproxy-test.conf'
    start_sandbox 900
    user 'systemctl --user enable --now canopyd.socket'
    within 10 scripts/machine network curl -fsS --cacert "$directory/company.pem" \
        --resolve auth.canopy.test:8443:127.0.0.2 https://auth.canopy.test:8443/admin/state
    within 10 eval 'root "getent hosts auth.canopy.test"'
}
# Runs a program in the machine's network until the group ends.
background() {
    local name=$1
    shift
    scripts/machine network "$@" >"$MACHINE/$name.log" 2>&1 </dev/null &
    mkdir -p "$MACHINE/background"
    echo $! >"$MACHINE/background/$name"
}
# Ends one of them, or all.
end_background() {
    local file process
    for file in "$MACHINE"/background/${1:-*}; do
        [ -f "$file" ] || continue
        process=$(cat "$file")
        rm "$file"
        kill "$process" 2>/dev/null || :
        while [[ $(ps -o stat= -p "$process") == [!Z]* ]]; do sleep 0.02; done
    done
}
check "an HTTPS server of a private CA, with a name that DNS knows" certificates

unknown_ca() {
    configure ""
    contains "$(refused_at https://auth.canopy.test:8443)" "certificate"
}
check "H06: without CAFile= the CA is not trusted" unknown_ca

good() {
    configure $'[network]\nCAFile=/etc/ssl/company.pem'
    sign_in_at https://auth.canopy.test:8443
    user 'canopyctl refresh >/dev/null'
    user 'canopyctl whoami' | grep -q ada@example.com
    same "$(state)" active "the state"
    same "$(user 'canopyctl token --json' | value generation)" 1 "the generation"
    user 'canopyctl logout'
}
check "H06: with it TLS, DNS, sign-in and rotation work, inside the unit's sandbox" good

bad_certificates() {
    local words
    words=$(refused_at https://auth.canopy.test:8444)
    contains "$words" "certificate"
    # The issuer that is not trusted is named.
    contains "$words" "Stranger Root"
    contains "$(refused_at https://auth.canopy.test:8445)" "expired"
    contains "$(refused_at https://auth.canopy.test:8446)" "auth.canopy.test"
    contains "$(refused_at https://auth.canopy.test:8447)" "not yet valid"
}
check "H06: an untrusted issuer, an expired certificate and a wrong name are refused, with the cause" bad_certificates

unknown_name() {
    contains "$(refused_at https://no.canopy.test:8443)" "no.canopy.test"
}
check "B04: a name that does not exist is server_unreachable, with the name" unknown_name

proxy() {
    # This user reaches nothing but the proxy; the proxy runs as another.
    scripts/machine network sh -euc '
    ip rule add pref 10 lookup local && ip rule del pref 0
    ip rule add pref 5 uidrange 4242-4242 to 127.0.0.2 unreachable'
    refused_at https://auth.canopy.test:8443 >/dev/null
    configure $'[network]\nCAFile=/etc/ssl/company.pem\nProxy=http://127.0.0.1:3128'
    sign_in_at https://auth.canopy.test:8443
    within 20 eval 'user "canopyctl refresh >/dev/null" &&
        [ "$(user "canopyctl token --json" | value generation)" -ge 1 ]'
    same "$(state)" active "the state"
    # The name is the proxy's to look up, and all that it sees.
    contains "$(root 'journalctl --sync && journalctl -u proxy -o cat')" "CONNECT auth.canopy.test:8443"
    user 'canopyctl logout'
}
check "H06: through an HTTP CONNECT proxy, for a daemon that no shell's environment reaches" proxy

proxy_trouble() {
    local words
    # It lets nobody through to this port.
    words=$(refused_at https://auth.canopy.test:8444)
    contains "$words" "proxy"
    sign_in_at https://auth.canopy.test:8443
    configure $'[network]\nCAFile=/etc/ssl/company.pem\nProxy=http://127.0.0.1:3129'
    within 20 eval '! user "canopyctl refresh 2>&1"'
    contains "degraded" "$(state)"
    configure $'[network]\nCAFile=/etc/ssl/company.pem\nProxy=http://127.0.0.1:3128'
    within 20 eval 'same "$(state)" active "the state"'
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "a proxy that refuses or is not there is told, and costs no session" proxy_trouble

wrong_clock() {
    # The clock of a machine without a battery is years behind at boot. Nobody can set it back here, for
    # it is everybody's: instead the server's is years ahead, and so is the day that its
    # certificate is valid from.
    scripts/machine network ip rule del pref 5
    configure $'[network]\nCAFile=/etc/ssl/company.pem'
    start_sandbox 900
    user 'canopyctl logout --local'
    sign_in_at https://auth.canopy.test:8443
    admin POST advance '{"seconds":94608000}' >/dev/null
    # The same address now shows the other certificate.
    end_background stunnel
    sed "s|/good.pem|/tmp.pem|; s|/early.pem|/good.pem|; s|/tmp.pem|/early.pem|" \
        "$MACHINE/tls/stunnel.conf" >"$MACHINE/tls/early.conf"
    background stunnel stunnel4 "$MACHINE/tls/early.conf"
    scripts/machine reboot
    within 20 eval 'same "$(state)" offline "the state"'
    contains "$(user 'canopyctl status')" "not yet valid"
    # The clock is set.
    end_background stunnel
    background stunnel stunnel4 "$MACHINE/tls/stunnel.conf"
    within 90 eval 'same "$(state)" active "the state"'
    user 'canopyctl token >/dev/null'
    same "$(counted family_revocations)" 0 "the number of families revoked"
}
check "C05: a clock that is years behind at boot costs time and no session" wrong_clock
end_background
