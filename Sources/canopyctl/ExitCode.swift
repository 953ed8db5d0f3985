/// What canopyctl's end tells scripts (INTERFACE, "Exit codes").
enum ExitCode: Int32 {
    case done = 0
    case failure = 1
    case usage = 2
    case daemonNotReached = 3
    case signInNeeded = 4
    case keyring = 5
    case server = 6
    case forbidden = 7
    case unknownProfile = 8
    case timeout = 9
}
