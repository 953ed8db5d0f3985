/// A kind of line in the journal: its name, its constant words, how grave it is, and the id under which
/// `journalctl --catalog` explains it.
package enum JournalEvent: String, CaseIterable, Sendable {
    case serving
    case stopping
    case stopped
    case stoppedUnstored = "stopped_unstored"
    case configurationRead = "configuration_read"
    case configurationIgnored = "configuration_ignored"
    case configurationBad = "configuration_bad"
    case signedIn = "signed_in"
    case signedOut = "signed_out"
    case signInRefused = "sign_in_refused"
    case signInRequired = "sign_in_required"
    case rotated
    case rotationsMissed = "rotations_missed"
    case exchangeFailed = "exchange_failed"
    case exchangeFailing = "exchange_failing"
    case recovered
    case exchangeDied = "exchange_died"
    case exchangeUnstartable = "exchange_unstartable"
    case successorUnstored = "successor_unstored"
    case slotUnmade = "slot_unmade"
    case stateUnreadable = "state_unreadable"
    case profileUnreadable = "profile_unreadable"
    case connectionsPaused = "connections_paused"
    case connectionForeign = "connection_foreign"
    case connectionRefused = "connection_refused"
    case pathUnwatched = "path_unwatched"
    case pathRemade = "path_remade"
    case pathLost = "path_lost"
    case descriptorUseless = "descriptor_useless"
    case slotUnkept = "slot_unkept"
    case credentialWaits = "credential_waits"
    case credentialUndelivered = "credential_undelivered"
    case credentialRefused = "credential_refused"
    case noticeRefused = "notice_refused"
    case memoryUnlocked = "memory_unlocked"
    case granted
    case denied

    /// A sentence that never varies; what does is a field.
    package var message: StaticString {
        switch self {
        case .serving: "Serving"
        case .stopping: "Stopping"
        case .stopped: "Stopped"
        case .stoppedUnstored: "Stopped with a next token that the keyring never took"
        case .configurationRead: "The configuration was read again"
        case .configurationIgnored: "The configuration has a line without effect"
        case .configurationBad: "The configuration is bad, and what was in force stays so"
        case .signedIn: "Signed in"
        case .signedOut: "Signed out"
        case .signInRefused: "A sign-in was refused"
        case .signInRequired: "A new sign-in is needed"
        case .rotated: "Rotated"
        case .rotationsMissed: "Rotations were missed before canopyd started"
        case .exchangeFailed: "An exchange failed"
        case .exchangeFailing: "An exchange failed again"
        case .recovered: "Exchanges work again"
        case .exchangeDied: "An exchange ended without a report"
        case .exchangeUnstartable: "The exchange cannot be started"
        case .successorUnstored: "The keyring does not take the next token; trying on"
        case .slotUnmade: "The successor slot cannot be made"
        case .stateUnreadable: "The state directory cannot be read"
        case .profileUnreadable: "A profile's state cannot be read"
        case .connectionsPaused: "No more connections for a moment"
        case .connectionForeign: "A connection of another user was refused"
        case .connectionRefused: "A connection was refused"
        case .pathUnwatched: "Nobody will notice if the socket's path is lost"
        case .pathRemade: "The socket's path was lost, and is made again"
        case .pathLost: "The socket's path is lost"
        case .descriptorUseless: "A descriptor from the service manager is of no use"
        case .slotUnkept: "The service manager does not keep every successor slot"
        case .credentialWaits: "A credential's request waits"
        case .credentialUndelivered: "A credential cannot be delivered"
        case .credentialRefused: "A unit is refused its credential"
        case .noticeRefused: "The desktop does not show a notice"
        case .memoryUnlocked: "Secrets are in memory that may be swapped to disk"
        case .granted: "A program has its first token of this generation"
        case .denied: "The access policy refuses a program"
        }
    }

    package var level: LogLevel {
        switch self {
        case .configurationBad, .signInRequired, .exchangeUnstartable, .slotUnmade,
            .stateUnreadable, .profileUnreadable, .pathLost, .credentialUndelivered:
            .error
        case .stoppedUnstored, .configurationIgnored, .exchangeFailed, .exchangeDied,
            .successorUnstored, .connectionsPaused, .connectionForeign, .connectionRefused,
            .pathUnwatched, .pathRemade, .descriptorUseless, .slotUnkept, .credentialWaits,
            .credentialRefused, .noticeRefused, .memoryUnlocked, .denied:
            .warning
        case .serving, .stopping, .stopped, .configurationRead, .signedIn, .signedOut,
            .signInRefused, .recovered, .rotationsMissed, .granted:
            .info
        case .rotated, .exchangeFailing: .debug
        }
    }

    /// The `MESSAGE_ID` of `systemd/canopyd.catalog`: 32 hexadecimal digits, random, and the same for
    /// ever.
    package var id: StaticString {
        switch self {
        case .serving: "8f7c1d74190746d5abb4632f775ba622"
        case .stopping: "bbdd9dc81e8a4b01a38cb47e0d32fd00"
        case .stopped: "54f1a2e525684128a2d7ef3d97a8ec78"
        case .stoppedUnstored: "9e5fdf5c33a04ab28a57f51b52322fda"
        case .configurationRead: "33cd8b5c2d40408f978b9593d3f5a42e"
        case .configurationIgnored: "9067c3b25ce641ef9268030fac705c9a"
        case .configurationBad: "fad047bf9cd04435b5edcb39905352ed"
        case .signedIn: "ff2f99169474430f954c1676178c4964"
        case .signedOut: "368a8d71a9dd454f8d9ba46ea19e97b6"
        case .signInRefused: "62ff6c1b5df74f309287b6517ffff3ea"
        case .signInRequired: "687e79eff88c4c36a90c02d3826e5677"
        case .rotated: "902398433bc34cf193ac459d6c2f4321"
        case .rotationsMissed: "704c9700a287415285ac4ad8811c0740"
        case .exchangeFailed: "f6f92884f9a24901b8ee8d7f5b8e4db2"
        case .exchangeFailing: "36516041d71d45ecac81451af0e90e33"
        case .recovered: "3f74c8c5ce3c4fa99df5722e65c503e2"
        case .exchangeDied: "59e17b016d0d4dddbf9fc303281dde43"
        case .exchangeUnstartable: "523d018820f04d78bbfc629b2b1d779d"
        case .successorUnstored: "9f5a249ecd3049d49eb61bb607e75df7"
        case .slotUnmade: "68848637caa44db4a39110715d7da24d"
        case .stateUnreadable: "db1b47ea8e9a41bc803e930cc61e2f23"
        case .profileUnreadable: "6c640505ca214d19af3fdb4df1115835"
        case .connectionsPaused: "1084041e21fb416ba0d25e24c923eae6"
        case .connectionForeign: "7137fde77b304ac4a7e94cecb9a9be21"
        case .connectionRefused: "c21803ad22a74b6b9735e5ecb437c550"
        case .pathUnwatched: "8ce4d5cb4b93497ab0afcb4b99805c56"
        case .pathRemade: "9b89eb0c3f39499d8e294d7ea3679f50"
        case .pathLost: "e525c4f4612e4025bf743958a83e676b"
        case .descriptorUseless: "017c1a05626e4eadb56fe94214b03fec"
        case .slotUnkept: "2098d279d0184845a66b69e19b5854cc"
        case .credentialWaits: "b4f53500845b4394bbc5f138c53e416a"
        case .credentialUndelivered: "90308ce8d13f441fb57c4caf6f62b8ec"
        case .credentialRefused: "f9becf7ff0ff4a5680cb875d2b4c8e4f"
        case .noticeRefused: "efadff7194863149a15f9c19d28bdec5"
        case .memoryUnlocked: "97ae64d735c9ae847a79a32368a09d12"
        case .granted: "2b827611ce2b47de8bd4d7dea13b6067"
        case .denied: "4d035367568b4ff5b93bff4209ef9d87"
        }
    }
}
