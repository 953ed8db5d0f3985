/// What makes a machine without a desktop open its keyring by itself, as two shell scripts: root's,
/// and then the user's.
///
/// A script, because it can be read before it is run, and run without canopyctl.
enum HeadlessScript {
    /// What seals the passphrase.
    enum Seal: String, CaseIterable {
        case host
        case tpm2
        case both = "host+tpm2"

        /// What speaks for it, and against.
        var tradeOff: String {
            switch self {
            case .host:
                """
                # Sealed with the host's key, /var/lib/systemd/credential.secret: good against who gets the home
                # directory or a backup of it, useless against who gets the whole disk.
                """
            case .tpm2:
                """
                # Sealed with the TPM: good against who gets the disk without the machine. A TPM counts power cuts
                # as attempts to guess, and locks itself for a while after some (measured with swtpm: after three);
                # the keyring stays locked until then. Where power fails, take --seal-with host. A firmware or board
                # that is replaced ends it: keep the passphrase elsewhere.
                """
            case .both:
                """
                # Sealed with the host's key and the TPM: it takes disk and machine together. What --seal-with tpm2
                # says of power cuts holds for it too.
                """
            }
        }

        /// What follows where systemd-creds sealed nothing, whose own words name no package.
        var remedy: String {
            switch self {
            case .host: ""
            case .tpm2, .both:
                """
                 || {
                            echo "nothing was sealed. systemd needs a TPM that systemd-creds has-tpm2 finds, and libraries" >&2
                            echo "that do not come with it: apt-get install libtss2-esys-3.0.2-0 libtss2-rc0" >&2
                            exit 1
                        }
                """
            }
        }
    }

    /// Root's part, for `user`.
    static func root(user: String, seal: Seal, takesPassphrase: Bool) -> String {
        let passphrase =
            takesPassphrase
            ? """
            # The passphrase that was given on standard input, without a line break at its end.
                IFS= read -r passphrase || [ -n "$passphrase" ]
                printf %s "$passphrase" |
            """
            : """
            # The keyring is made with a passphrase that nobody knows; one that is there has its own.
                home=$(getent passwd "$user" | cut -d : -f 6)
                if [ -e "$home/.local/share/keyrings/login.keyring" ]; then
                    echo "$user has a keyring already: give its password with --passphrase-stdin," >&2
                    echo "or move $home/.local/share/keyrings/login.keyring away" >&2
                    exit 1
                fi
                head -c 32 /dev/urandom | base64 -w 0 |
            """
        return """
            # ---- Root's part: sudo canopyctl setup-headless --user \(quoted(user)) --apply
            set -eu
            user=\(quoted(user))
            uid=$(id -u "$user")
            blob=/etc/credstore.encrypted/canopyd-keyring-$uid

            # The user's services start at boot, and do not end with a logout.
            loginctl enable-linger "$user"

            \(seal.tradeOff)
            mkdir -p -m 700 /etc/credstore.encrypted
            if [ -e "$blob" ]; then
                echo "$blob is there already, and kept"
            else
                \(passphrase)
                    systemd-creds encrypt --with-key=\(seal.rawValue) --name="canopyd-keyring-$uid" - "$blob.new"\(seal.remedy)
                mv "$blob.new" "$blob"
            fi

            # What unseals it at boot, before the user's services start.
            \(writing(.keyringUnit, to: "/etc/systemd/system/canopyd-keyring@.service"))
            systemctl daemon-reload
            systemctl enable --now "canopyd-keyring@$uid.service"
            echo "root's part is done; now, as $user: canopyctl setup-headless --apply"
            """
    }

    /// Undoes root's part.
    static func undoneRoot(user: String) -> String {
        """
        # ---- Root's part: sudo canopyctl setup-headless --user \(quoted(user)) --undo --apply
        set -eu
        user=\(quoted(user))
        uid=$(id -u "$user")
        systemctl disable --now "canopyd-keyring@$uid.service"
        # Without it nobody can open the keyring any more, unless its password is known.
        rm -f "/etc/credstore.encrypted/canopyd-keyring-$uid"
        # Other users may have it, too.
        if ! ls /etc/credstore.encrypted/canopyd-keyring-* >/dev/null 2>&1; then
            rm -f /etc/systemd/system/canopyd-keyring@.service
        fi
        systemctl daemon-reload
        echo "$user still lingers; if nothing else needs it: loginctl disable-linger $user"
        """
    }

    /// The user's part, which needs root's.
    static let user = """
        # ---- The user's part: canopyctl setup-headless --apply
        set -eu
        units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
        activations=${XDG_DATA_HOME:-$HOME/.local/share}/dbus-1/services
        export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
        export DBUS_SESSION_BUS_ADDRESS="${DBUS_SESSION_BUS_ADDRESS:-unix:path=$XDG_RUNTIME_DIR/bus}"
        if ! [ -r "/run/canopyd-keyring-$(id -u)/passphrase" ]; then
            echo "the keyring's passphrase is not unsealed: root's part comes first" >&2
            echo "see: systemctl status canopyd-keyring@$(id -u).service" >&2
            exit 1
        fi

        # The keyring unlocks itself, and nothing starts a locked one in its place.
        \(writing(.keyringDropIn, to: "$units/gnome-keyring-daemon.service.d/50-canopyd-headless.conf"))
        \(writing(.secretsActivation, to: "$activations/org.freedesktop.secrets.service"))
        \(writing(.keyringActivation, to: "$activations/org.gnome.keyring.service"))
        systemctl --user daemon-reload
        busctl --user --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig

        # One that runs already goes, and comes back unlocked.
        systemctl --user stop gnome-keyring-daemon.service
        systemctl --user enable --now gnome-keyring-daemon.service
        systemctl --user enable canopyd.socket canopyd.service
        systemctl --user start canopyd.service
        echo "the user's part is done; now sign in: canopyctl login"
        """

    /// Undoes the user's part.
    static let undoneUser = """
        # ---- The user's part: canopyctl setup-headless --undo --apply
        set -eu
        units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
        activations=${XDG_DATA_HOME:-$HOME/.local/share}/dbus-1/services
        export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
        export DBUS_SESSION_BUS_ADDRESS="${DBUS_SESSION_BUS_ADDRESS:-unix:path=$XDG_RUNTIME_DIR/bus}"
        # The keyring stays as it is, and keeps its password.
        systemctl --user disable gnome-keyring-daemon.service
        rm -f "$units/gnome-keyring-daemon.service.d/50-canopyd-headless.conf" \\
            "$activations/org.freedesktop.secrets.service" "$activations/org.gnome.keyring.service"
        systemctl --user daemon-reload
        busctl --user --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig
        systemctl --user stop gnome-keyring-daemon.service
        echo "the keyring is locked from now on, until somebody unlocks it; canopyd goes on and says so"
        """

    /// A here-document; `path` is the script's to expand.
    private static func writing(_ file: HeadlessFile, to path: String) -> String {
        """
        mkdir -p "$(dirname "\(path)")"
        cat >"\(path)" <<'END'
        \(file.text)
        END
        """
    }

    /// One word of the shell's.
    private static func quoted(_ word: String) -> String {
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: #"'\''"#) + "'"
    }
}
