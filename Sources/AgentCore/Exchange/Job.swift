/// What canopyd asks of one exchange.
package struct Job: Sendable, Equatable {
    package let kind: JobKind

    /// One profile; several for a load, which does them in turn on one connection to the bus.
    package let profiles: [ProfileName]

    /// This machine's name in the keyring: a hash of the machine id.
    package let machine: String
    package let boot: BootID

    /// The state directory's folder of this machine.
    package let stateDirectory: String

    /// The folder for the copy of the marks; nil where there is no runtime directory.
    package let runtimeDirectory: String?
    package var caFile: String?
    package var proxy: String?

    /// What canopyd has in hand of the profile.
    package var known: Generation?

    /// Rotations: whether the token may be presented.
    package var mayPresent = false

    /// Rotations and sign-outs: for how long the slot still keeps what was reported as stored; nil if
    /// nothing was.
    package var slotKeptFor: TimeSpan?

    /// Rotations and sign-outs: whether what the slot keeps was stored twice.
    package var isSlotRewritten = false

    /// Rotations: whether nobody may come after it, so that what a late keyring has not written for sure is
    /// waited for.
    package var isLast = false

    /// Whether the service manager keeps the successor slot when canopyd dies.
    package var isSlotKept = false

    /// Sign-outs: whether the server is left alone.
    package var isLocal = false

    /// Sign-ins and second factors: the request's body as it came, unread.
    ///
    /// Queries: the access token.
    package var secret: Secret?

    /// Queries: the server.
    ///
    /// Sign-ins: what the configuration says where the body does not.
    package var baseURL: String?

    /// Sign-ins: what the configuration says where the body does not.
    package var publishableKey: String?

    /// Revoking: the session's id.
    package var sessionID: String?

    /// Examinations: the servers to be reached.
    package var servers: [String] = []

    /// Second factors: the sign-ins of the profile that wait for one.
    package var continuations: [Secret] = []

    package init(
        _ kind: JobKind, profiles: [ProfileName], machine: String, boot: BootID,
        stateDirectory: String, runtimeDirectory: String?
    ) {
        self.kind = kind
        self.profiles = profiles
        self.machine = machine
        self.boot = boot
        self.stateDirectory = stateDirectory
        self.runtimeDirectory = runtimeDirectory
    }

    private enum Tag {
        static let profile: UInt8 = 1
        static let machine: UInt8 = 2
        static let boot: UInt8 = 3
        static let stateDirectory: UInt8 = 4
        static let runtimeDirectory: UInt8 = 5
        static let caFile: UInt8 = 6
        static let proxy: UInt8 = 7
        static let knownSignIn: UInt8 = 8
        static let knownGeneration: UInt8 = 9
        static let mayPresent: UInt8 = 10
        static let isLocal: UInt8 = 11
        static let secret: UInt8 = 12
        static let baseURL: UInt8 = 13
        static let publishableKey: UInt8 = 14
        static let sessionID: UInt8 = 15
        static let isSlotKept: UInt8 = 16
        static let continuation: UInt8 = 17
        static let server: UInt8 = 18
        static let isLast: UInt8 = 19
        static let slotKeptFor: UInt8 = 20
        static let isSlotRewritten: UInt8 = 21
    }

    package func encoded(in memory: SecretMemory) -> Secret {
        var writer = FieldWriter(kind: kind.rawValue, in: memory)
        for profile in profiles {
            writer.field(Tag.profile, profile.text)
        }
        writer.field(Tag.machine, machine)
        writer.field(Tag.boot, boot.text)
        writer.field(Tag.stateDirectory, stateDirectory)
        writer.field(Tag.runtimeDirectory, runtimeDirectory)
        writer.field(Tag.caFile, caFile)
        writer.field(Tag.proxy, proxy)
        writer.field(Tag.knownSignIn, known?.signIn.text)
        writer.field(Tag.knownGeneration, known?.number)
        writer.field(Tag.mayPresent, mayPresent ? 1 : 0)
        writer.field(Tag.slotKeptFor, slotKeptFor?.nanoseconds)
        writer.field(Tag.isSlotRewritten, isSlotRewritten ? 1 : 0)
        writer.field(Tag.isLast, isLast ? 1 : 0)
        writer.field(Tag.isLocal, isLocal ? 1 : 0)
        writer.field(Tag.isSlotKept, isSlotKept ? 1 : 0)
        writer.field(Tag.secret, secret)
        writer.field(Tag.baseURL, baseURL)
        writer.field(Tag.publishableKey, publishableKey)
        writer.field(Tag.sessionID, sessionID)
        for server in servers { writer.field(Tag.server, server) }
        for continuation in continuations { writer.field(Tag.continuation, continuation) }
        return writer.finish(in: memory)
    }

    /// Returns nil if the bytes (without the length in front) are no job.
    package init?(decoding bytes: UnsafeRawBufferPointer, in memory: SecretMemory) {
        guard let fields = FieldReader(bytes), let kind = JobKind(rawValue: fields.kind),
            let machine = fields.text(Tag.machine), let boot = fields.text(Tag.boot),
            let stateDirectory = fields.text(Tag.stateDirectory)
        else { return nil }
        var profiles: [ProfileName] = []
        for text in fields.all(Tag.profile) {
            do throws(ProfileName.Malformed) {
                profiles.append(try ProfileName(String(decoding: text, as: UTF8.self)))
            } catch {
                return nil
            }
        }
        guard kind == .load || kind == .examine || profiles.count == 1 else { return nil }
        self.init(
            kind, profiles: profiles, machine: machine, boot: BootID(boot),
            stateDirectory: stateDirectory, runtimeDirectory: fields.text(Tag.runtimeDirectory))
        caFile = fields.text(Tag.caFile)
        proxy = fields.text(Tag.proxy)
        if let signIn = fields.text(Tag.knownSignIn).flatMap(SignInID.init),
            let number = fields.number(Tag.knownGeneration)
        {
            known = Generation(signIn: signIn, number: number)
        }
        mayPresent = fields.number(Tag.mayPresent) == 1
        slotKeptFor = fields.number(Tag.slotKeptFor).map(TimeSpan.init(nanoseconds:))
        // A canopyd that an upgrade left running says nothing of it, and would be told for ever that the
        // session was stored once more.
        isSlotRewritten = fields.number(Tag.isSlotRewritten) != 0
        isLast = fields.number(Tag.isLast) == 1
        isLocal = fields.number(Tag.isLocal) == 1
        isSlotKept = fields.number(Tag.isSlotKept) == 1
        secret = fields.secret(Tag.secret, in: memory)
        baseURL = fields.text(Tag.baseURL)
        publishableKey = fields.text(Tag.publishableKey)
        sessionID = fields.text(Tag.sessionID)
        servers = fields.all(Tag.server).map { String(decoding: $0, as: UTF8.self) }
        continuations = fields.all(Tag.continuation).map { Secret(copying: $0, in: memory) }
    }
}
