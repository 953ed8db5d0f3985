/// Every limit: its name, its value, its reason, and who enforces it.
package enum Limits {
    /// Bytes of a profile name.
    ///
    /// INTERFACE: 64. Enforced by `ProfileName`.
    package static let profileNameBytes = 64

    /// Bytes of a Unix socket's path without its final NUL: `sizeof sun_path` is 108 on Linux.
    ///
    /// Enforced by `SocketAddress`.
    package static let socketPathBytes = 107

    /// Digits of a whole number that a client or canopyd writes: as many as fit, whatever they are.
    ///
    /// Enforced by `RequestHead`, `RequestTarget` and `ResponseHead`.
    package static let numberDigits = 18

    /// Seconds of validity that a request may ask for: the largest whole number that every JSON reader
    /// keeps.
    ///
    /// Enforced by `Router`.
    package static let validityMaximumSeconds: Int64 = 1 << 53

    /// Characters of a client's own text that are repeated to it: a name or a number fits.
    ///
    /// Enforced by `Router`.
    package static let shownParameterCharacters = 40

    /// Bytes of an access or a refresh token.
    ///
    /// Real ones have 1 to 4 KiB; above 1 MiB systemd refuses a credential, and nothing sane sends
    /// one. Enforced by `CanopyBody`.
    package static let tokenBytes = 1 << 20

    /// Bytes of an answer's body that are read.
    ///
    /// A token of the largest size and its envelope fit. Enforced by `CanopyClient`, which stops
    /// reading.
    package static let answerBodyBytes = (1 << 20) + (1 << 16)

    /// Seconds that an access token may live: ten years, above which `expires_in` is a mistake.
    ///
    /// Enforced by `CanopyBody`.
    package static let tokenLifetimeSeconds: Int64 = 315_360_000

    /// Seconds that a `Retry-After` counts for: a century, so that no sum of spans overflows.
    ///
    /// ``RotationTiming`` obeys 15 minutes of it. Enforced by `CanopyAnswer`.
    package static let retryAfterSeconds: Int64 = 1 << 32

    /// Characters of a server's words that are shown: two lines of a terminal.
    ///
    /// Enforced by `CanopyBody`.
    package static let shownServerCharacters = 300

    /// Bytes of a host's name in a URL: RFC 1035, 2.3.4.
    ///
    /// Enforced by `BaseURL`.
    package static let hostNameBytes = 253

    /// Bytes of a message between canopyd and an exchange: a session document or two tokens of the
    /// largest size, and some.
    ///
    /// Enforced by `FieldReader` (`Fields.swift`).
    package static let messageBytes = 4 * tokenBytes

    /// Bytes of a process's name that the kernel keeps: `TASK_COMM_LEN` is 16, with a final NUL.
    ///
    /// Enforced by the kernel; `KeyringOwner` knows by it that a name is cut off.
    package static let processNameBytes = 15

    /// Bytes of a request's head, target line included.
    ///
    /// nginx and Node allow 8 to 16 KiB.
    ///
    /// Enforced by `RequestHead`.
    package static let requestHeadBytes = 16 << 10

    /// Header fields of a request; curl sends 3, browsers about 20, Apache allows 100.
    ///
    /// Enforced by `RequestHead`.
    package static let requestFields = 100

    /// Empty lines before a request.
    ///
    /// RFC 9112 2.2 asks to bear with one, which old clients append to a body; more than a few is
    /// somebody who sends no request. Enforced by `RequestHead`.
    package static let requestEmptyLines = 4

    /// Bytes of a request's body: the largest is a sign-in, a few hundred bytes.
    ///
    /// Enforced by `RequestHead`, before a byte of the body is read.
    package static let requestBodyBytes = 64 << 10

    /// Nesting of JSON.
    ///
    /// Canopy's answers nest 4 deep. Enforced by `JSONReader`; not of those answers, in which a successor
    /// may stand beside whatever there is: `answerBodyBytes` bounds what they cost.
    package static let jsonDepth = 64

    /// Bytes of a JSON document: its places are 32-bit numbers.
    ///
    /// Whoever reads from outside has a far lower limit of its own. Enforced by `JSONReader`.
    package static let jsonBytes = Int(Int32.max)

    /// Connections of one user at a time, unless configured.
    ///
    /// INTERFACE: 16384. Enforced by `Listener`, and the default of `Settings`.
    package static let connections = 16_384

    /// Connections of one user at a time at most.
    ///
    /// Linux gives a process no more descriptors than `fs.nr_open`, 1048576. Enforced by `Settings`.
    package static let connectionsMaximum = 1_048_576

    /// Bytes of canopyd.conf; a real one has a few hundred.
    ///
    /// Enforced by `Settings`.
    package static let configurationBytes = 1 << 20

    /// Lines of canopyd.conf that are complained of at once; more come of a file that is none.
    ///
    /// Enforced by `Settings`.
    package static let configurationRemarks = 20

    /// Characters of a line of canopyd.conf that a complaint repeats.
    ///
    /// Enforced by `Settings`.
    package static let shownConfigurationCharacters = 100

    /// Bytes of a systemd unit's name: its `UNIT_NAME_MAX`.
    ///
    /// Enforced by `UnitName`.
    package static let unitNameBytes = 255

    /// Bytes of the file in `CAFile=` that are searched for a certificate; the bundle of all public CAs
    /// has 220 KB, and a disk image is not to be read to its end.
    ///
    /// Enforced by `TrustFile`.
    package static let trustFileBytes = 4 << 20

    /// Bytes of an unbroken run of a token's characters in a server's words, from which on it is not
    /// shown; a UUID has 36, the shortest of Canopy's tokens 47.
    ///
    /// Enforced by `CanopyBody`.
    package static let shownWordBytes = 40

    /// Bytes of a publishable key; real ones have about 40.
    ///
    /// Enforced by `Settings`.
    package static let publishableKeyBytes = 256

    /// Seconds that a token request waits unless it says.
    ///
    /// INTERFACE: 10. Enforced by `Router`.
    package static let requestTimeoutSeconds = 10

    /// Seconds that a token request may ask to wait.
    ///
    /// INTERFACE: 120. Enforced by `Router`.
    package static let requestTimeoutMaximumSeconds = 120

    /// Seconds of validity that a token request gets unless it says.
    ///
    /// INTERFACE: 30. Enforced by `AccessTokenLife`.
    package static let minimumValiditySeconds = 30

    /// Profiles on one machine.
    ///
    /// One timer and one small file each; a bound so that a damaged state directory cannot make
    /// canopyd swallow the machine. Enforced by `Agent`.
    package static let profiles = 1024

    /// Bytes of an answer's head: canopyd's have some 200.
    ///
    /// Enforced by `ResponseHead`.
    package static let responseHeadBytes = 16 << 10

    /// Bytes of a second factor's code: recovery codes, the longest, have 19.
    ///
    /// Enforced by `SecondFactorAnswer`.
    package static let secondFactorCodeBytes = 256

    /// Second factors that a server may name for one challenge; three are known.
    ///
    /// Enforced by `CanopyBody`.
    package static let secondFactors = 16

    /// Sign-ins of one profile that wait for a second factor; people have one, or two by mistake.
    ///
    /// Enforced by `ServedProfile`, which forgets the oldest.
    package static let openChallenges = 8

    /// Seconds until a challenge expires whose end the server does not say, and at the most.
    ///
    /// A usual length. Enforced by `SignInMeaning`.
    package static let challengeSeconds = 300

    /// Seconds that canopyctl waits for canopyd beyond the timeout that it asked for: the answer is
    /// then only a matter of scheduling.
    ///
    /// Enforced by canopyctl's `ClientConnection`, as `Token` and others ask it to.
    package static let clientGraceSeconds = 3

    /// Bytes of a credential that systemd takes; of a larger one it starts no unit.
    ///
    /// systemd's `CREDENTIAL_SIZE_MAX`. Enforced by systemd, and used by `CredentialDelivery` to
    /// refuse.
    package static let credentialBytes = 1 << 20

    /// Units at a time that are given a credential; the others wait in the kernel's queue.
    ///
    /// Units start by the dozen, not by the hundred. Enforced by `CredentialSocket`.
    package static let credentialDeliveries = 64

    /// Seconds from a request's first byte to its last, and for sending an answer.
    ///
    /// Local programs need milliseconds; a stopped one may hold a connection for this long.
    /// Enforced by `Connections`.
    package static let connectionOperationSeconds = 30

    /// Seconds between two comment lines to a subscriber.
    ///
    /// INTERFACE: 60. Enforced by `Connections`.
    package static let eventKeepAliveSeconds = 60

    /// Bytes that are read at once: a head of the largest size, and as much of what follows.
    ///
    /// Enforced by `Connections`.
    package static let connectionReadBytes = 2 * requestHeadBytes

    /// Requests for tokens that are remembered, one of each length modulo this.
    ///
    /// A desktop has a handful of programs that ask. Enforced by `RecentRequests`.
    package static let recentRequests = 8

    /// Bytes of a request that is remembered; curl's has 90, an SDK's some hundreds.
    ///
    /// Enforced by `RecentRequests`.
    package static let recentRequestBytes = 1024

    /// Bytes of a refused request that are read and thrown away before the connection closes, so
    /// that a client that sends before it reads gets to the answer.
    ///
    /// Enforced by `ConnectionAnswers`.
    package static let requestDrainBytes = 1 << 20

    /// Clients that are told that there are too many, at a time: each takes a descriptor.
    ///
    /// An honest one has read that in a moment. Enforced by `Connections`, which cuts off the first.
    package static let farewells = 32

    /// Seconds that a client gets to read that there are too many.
    ///
    /// Enforced by `Connections`.
    package static let farewellSeconds = 2

    /// Events that wait for a subscriber: two kinds of each profile, of each the latest.
    ///
    /// Only names that come and go while one does not read make more. Enforced by `ConnectionEvents`,
    /// which drops the subscriber.
    package static let unsentEvents = 2 * profiles

    /// Bytes of requests that are not all there, or not served yet, of all connections together.
    ///
    /// An honest client's are there for microseconds; a thousand that stop within a head of the
    /// largest size fit. Enforced by `Connections`, which closes the slowest.
    package static let pendingBytes = 16 << 20

    /// Sign-ins and codes on their way at a time.
    ///
    /// Each holds locked memory, of which systemd gives a user's process 8 MiB; people sign in once
    /// in months. Enforced by `Connections`, before the memory is taken.
    package static let secretBodies = 64

    /// Requests of one profile that wait for an exchange of their own.
    ///
    /// An exchange takes some 60 ms, and nobody waits for longer than a minute. Enforced by `AgentRequests`.
    package static let requestsPerProfile = 256

    /// Requests out of connections' own buffers that are served before the kernel is asked who else
    /// is ready: what one client sends in advance must not make others wait.
    ///
    /// Enforced by `Connections`.
    package static let bufferedRequestsPerTurn = 4

    /// Connections from which on memory is given back to the system when most have gone.
    ///
    /// It takes a moment; what fewer leave is not worth it. Enforced by `Connections`.
    package static let crowd = 256

    /// Bytes of requests from which on memory is given back to the system when most are done with:
    /// what a few clients that pipeline make, and do not read.
    ///
    /// Enforced by `Connections`.
    package static let crowdBytes = 1 << 20

    /// Clients that are let in and answered before those that are in already have their turn: a client
    /// for each request is served a quarter faster than one at a time.
    ///
    /// Enforced by `Listener`.
    package static let acceptsPerTurn = 8

    /// Connections that wait to be accepted; the kernel's own limit (`somaxconn`) is 4096.
    ///
    /// Enforced by the kernel.
    package static let listenBacklog = 4096

    /// Seconds until accepting is tried again after it failed, if no connection closes before: what
    /// was lacking may be another process's to give back.
    ///
    /// Enforced by `Listener`.
    package static let acceptRetrySeconds = 1

    /// Seconds until a socket's path that was lost and could not be made again is tried again, twice as
    /// many each time: a file system that has room again tells nobody.
    ///
    /// Enforced by `Listener`.
    package static let pathRetrySeconds = 1

    /// The most seconds between two such tries: a machine that is left so overnight is not to be kept
    /// awake.
    ///
    /// Enforced by `Listener`.
    package static let longestPathRetrySeconds = 60

    /// Descriptors that connections leave to each profile: its slot, and its exchange's socket and
    /// process, with a copy of one while it is started.
    ///
    /// Enforced by `Listener`.
    package static let descriptorsPerProfile = 4

    /// Descriptors that connections leave to everything else: locks, the bus, the log, credentials,
    /// ``farewells``.
    ///
    /// Enforced by `Listener`.
    package static let descriptorsKept = 128

    /// Lines of one kind in ``logSpanSeconds``.
    ///
    /// Enough to see what happens, few enough to keep what others wrote. Enforced by `LogBudget`.
    package static let logLines = 20

    /// Seconds for which lines of one kind are counted.
    ///
    /// Enforced by `LogBudget`.
    package static let logSpanSeconds = 60

    /// Bytes of a field's value in the log: a path or a server's sentence fits.
    ///
    /// Enforced by `JournalLine`.
    package static let logValueBytes = 1024

    /// Profiles that a notice on the desktop names; more than these few nobody reads off a bubble.
    ///
    /// Enforced by `SignInNoticeText`.
    package static let noticeProfiles = 5

    /// Characters of an address that a notice on the desktop shows: RFC 5321 allows 254.
    ///
    /// Enforced by `SignInNoticeText`.
    package static let noticeEmailCharacters = 254

    /// Bytes of the record of what the desktop was told: some 100 for each of ``profiles``.
    ///
    /// Enforced by `NotificationService`.
    package static let noticeRecordBytes = 1 << 20

    /// How many of a family's latest presentations and arrivals the sandbox keeps at the least, and
    /// at most twice as many: more than a test looks at, and 80 kB of a family that rotates for days.
    ///
    /// Enforced by `SessionLedger`.
    package static let sandboxHistory = 1000

    /// Seconds that answers on their way may take once canopyd is told to stop.
    ///
    /// INTERFACE asks for an end within 2. Enforced by `Canopyd`.
    package static let stopSeconds = 1

    /// Seconds that the service manager has to wait for an end: above the sum of a rotation's own
    /// deadlines, five answers of 40 s at the most, the waits between them and the store.
    ///
    /// The unit's `TimeoutStopSec=`. Enforced by `ServiceUnit`, for the doctor.
    package static let unitStopSeconds = 300

    /// Programs of which it is remembered that they were given a token of the present generation, for
    /// each profile.
    ///
    /// More than ask on any desktop; 50 kB if all paths are long. Enforced by `GrantLedger`.
    package static let grantedPrograms = 256

    /// Processes of which it is remembered for ``recentCallerSeconds`` that they were given a token.
    ///
    /// Those that connect for each request, and do so all the time. Enforced by `RecentCallers`.
    package static let recentCallers = 64

    /// Seconds for which a process that was looked at is not looked at again.
    ///
    /// Numbers do not come round in that time. Enforced by `RecentCallers`.
    package static let recentCallerSeconds = 1

    /// Bytes of a file in `/proc/PID`: of `cgroup` a line for each old hierarchy, each a path.
    ///
    /// Enforced by `ProcessDirectory`.
    package static let processFileBytes = 64 << 10

    /// Bytes of a path that a link in `/proc` is read as: the kernel's `PATH_MAX`, with what it adds.
    ///
    /// Enforced by `ProcessDirectory`.
    package static let linkBytes = 4096 + 16
}
