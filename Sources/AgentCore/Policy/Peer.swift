/// Who is at the other end of a connection: the process that called connect(2), whoever has the
/// connection now.
///
/// What it runs and where it stands is what the kernel says while it is looked at: a process that
/// starts another program stays the same one.
package struct Peer: Equatable, Sendable {
    /// Its number; 0 for one that this process cannot name.
    package let process: Int32
    package let user: UInt32
    package let executable: Known<Executable>
    package let units: Known<UnitMembership>

    /// What the program calls itself, which proves nothing; nil where that is not known either.
    package let name: String?

    package init(
        process: Int32, user: UInt32, executable: Known<Executable>,
        units: Known<UnitMembership>, name: String? = nil
    ) {
        self.process = process
        self.user = user
        self.executable = executable
        self.units = units
        self.name = name
    }

    /// One of whom nothing is known, for one reason.
    package init(process: Int32, user: UInt32, unknown reason: Obscurity) {
        self.init(
            process: process, user: user, executable: .unknown(reason), units: .unknown(reason))
    }

    /// What was found out, or why it was not.
    package enum Known<Value: Equatable & Sendable>: Equatable, Sendable {
        case known(Value)
        case unknown(Obscurity)

        package var value: Value? {
            switch self {
            case .known(let value): value
            case .unknown: nil
            }
        }

        package var obscurity: Obscurity? {
            switch self {
            case .known: nil
            case .unknown(let reason): reason
            }
        }
    }

    /// Why something is not known of a process.
    package enum Obscurity: Equatable, Sendable {
        /// It has no number here: it is outside the container that canopyd is in.
        case outside
        /// It has ended; another may have its connection.
        case ended
        /// Another process has its number by now.
        case replaced
        /// `/proc` does not show it.
        ///
        /// A mount of `/proc` with `hidepid=`, or `ProtectProc=` in the unit.
        case hidden
        /// The kernel does not let this process look: it is in a user namespace of its own, as in a
        /// unit with `PrivateUsers=`, or the program keeps others of its user from looking.
        case forbidden
        /// It could not be read, for this reason.
        case unreadable(String)
        /// It is in no control group of systemd's.
        case noControlGroup

        package var words: String {
            switch self {
            case .outside: "it is outside the container that canopyd runs in"
            case .ended: "the process that connected has ended"
            case .replaced: "the process that connected has ended, and another has its number"
            case .hidden: "/proc hides it (hidepid=, or ProtectProc= in canopyd's unit)"
            case .forbidden:
                "the kernel does not let canopyd look at it: canopyd runs in a user namespace "
                    + "(PrivateUsers=), or the program protects itself"
            case .unreadable(let error): error
            case .noControlGroup: "its control group is none of systemd's"
            }
        }
    }
}

/// A program's file.
package struct Executable: Equatable, Sendable {
    /// Where the kernel says it is, or was; in a mount namespace of its own a process may have
    /// anything there.
    package let path: String
    package let file: File
    package let standing: Standing

    package init(path: String, file: File, standing: Standing) {
        self.path = path
        self.file = file
        self.standing = standing
    }

    /// Which file it is, whatever its path.
    package struct File: Hashable, Sendable {
        package let device: UInt64
        package let inode: UInt64

        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// How the path and the file go together.
    package enum Standing: Equatable, Sendable {
        /// The file is at its path, as canopyd sees it.
        case inPlace
        /// It was removed or replaced since the process was started, as by an upgrade, or it was
        /// never at any path.
        case removed
        /// Another file, or none, is there as canopyd sees it: the process is in a container or a
        /// mount namespace of its own.
        case elsewhere
    }

    /// The path, and what has to be known of it.
    package var words: String {
        switch standing {
        case .inPlace: path
        case .removed: "\(path) (removed or replaced since it was started)"
        case .elsewhere: "\(path) (of another mount namespace)"
        }
    }
}
