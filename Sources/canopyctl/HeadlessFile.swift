/// The files of a machine without a desktop, as they stand in `systemd/headless/`: canopyctl is one
/// file, and has to bring them along.
enum HeadlessFile: CaseIterable {
    /// Unseals the passphrase: `canopyd-keyring@.service`, for the system.
    case keyringUnit
    /// Unlocks the keyring with it: a drop-in for `gnome-keyring-daemon.service`, for the user.
    case keyringDropIn
    /// Makes the bus start that one, and no locked one, for `org.freedesktop.secrets`.
    case secretsActivation
    /// The same for `org.gnome.keyring`.
    case keyringActivation

    /// Below `systemd/headless/`.
    var path: String {
        switch self {
        case .keyringUnit: "canopyd-keyring@.service"
        case .keyringDropIn: "gnome-keyring-daemon.service.d/50-canopyd-headless.conf"
        case .secretsActivation: "org.freedesktop.secrets.service"
        case .keyringActivation: "org.gnome.keyring.service"
        }
    }

    var text: String {
        switch self {
        case .keyringUnit:
            #"""
            # The root's part: unseals the keyring's passphrase for the user with this uid, before the user's
            # services start. It is a unit of its own so that a bad blob fails nothing but this unit.
            # /etc/systemd/system/canopyd-keyring@.service, enabled as canopyd-keyring@UID.service
            [Unit]
            Description=Keyring passphrase of user %i
            Before=user@%i.service

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            User=%i
            UMask=0077
            LoadCredentialEncrypted=canopyd-keyring-%i:/etc/credstore.encrypted/canopyd-keyring-%i
            # On a tmpfs, readable by this user alone. It stays: a keyring daemon that was killed needs it again.
            RuntimeDirectory=canopyd-keyring-%i
            RuntimeDirectoryMode=0700
            ExecStart=/bin/sh -c 'cat "$CREDENTIALS_DIRECTORY/canopyd-keyring-%i" >"$RUNTIME_DIRECTORY/passphrase"'

            [Install]
            WantedBy=user@%i.service
            """#
        case .keyringDropIn:
            #"""
            # The user's part: the keyring unlocks itself with the passphrase that the system unsealed.
            # ~/.config/systemd/user/gnome-keyring-daemon.service.d/50-canopyd-headless.conf
            [Unit]
            StartLimitIntervalSec=0

            [Service]
            # Started means that the Secret Service answers: what comes after it finds it unlocked.
            Type=dbus
            BusName=org.freedesktop.secrets
            # One that somebody else started, locked, has the name: it gives way.
            ExecStartPre=-/bin/sh -c 'p=$(busctl --user call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus GetConnectionUnixProcessID s org.freedesktop.secrets 2>/dev/null | cut -d " " -f 2); [ "$(cat "/proc/$p/comm")" = gnome-keyring-d ] && kill "$p" && while [ -d "/proc/$p" ]; do sleep 0.1; done'
            ExecStart=
            # Without a passphrase it starts all the same, locked, so that canopyd can say what is wrong.
            ExecStart=/bin/sh -c 'p=/run/canopyd-keyring-%U/passphrase; set -- /usr/bin/gnome-keyring-daemon --foreground --components=secrets --control-directory=%t/keyring; if [ -r "$p" ]; then exec "$@" --unlock <"$p"; else exec "$@"; fi'
            Restart=on-failure
            RestartSec=1

            [Install]
            WantedBy=default.target
            """#
        case .secretsActivation:
            #"""
            # The user's part: whoever asks for the Secret Service first gets the keyring that unlocks itself,
            # and not one that the bus starts locked.
            # ~/.local/share/dbus-1/services/org.freedesktop.secrets.service
            [D-BUS Service]
            Name=org.freedesktop.secrets
            Exec=/bin/false
            SystemdService=gnome-keyring-daemon.service
            """#
        case .keyringActivation:
            #"""
            # The user's part: whoever asks for gnome-keyring by name gets the keyring that unlocks itself,
            # and not one that the bus starts locked.
            # ~/.local/share/dbus-1/services/org.gnome.keyring.service
            [D-BUS Service]
            Name=org.gnome.keyring
            Exec=/bin/false
            SystemdService=gnome-keyring-daemon.service
            """#
        }
    }
}
