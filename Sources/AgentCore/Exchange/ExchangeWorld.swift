/// Everything that an exchange touches, in the words of its steps.
///
/// The procedures (``Rotation``, ``SignIn``, ``SignOut``) are written against it, so that the
/// simulator runs the very code that canopyd-exchange runs. Each call is one step that a crash can
/// follow: the real world never throws, a simulated one throws where it kills the process.
package protocol ExchangeWorld: AnyObject {
    /// `Never` for a real exchange.
    associatedtype Interruption: Error

    var boot: BootID { get }
    var memory: SecretMemory { get }

    /// A uniformly random number in 0..<1.
    func draw() -> Double
    func now() -> Moment
    func pause(for span: TimeSpan) throws(Interruption)

    /// A pause for somebody who does nothing while the machine sleeps, which does not count.
    func pause(awakeFor span: TimeSpan) throws(Interruption)

    /// Takes the profile's lock within a bounded time; false if somebody else kept it.
    func lock() throws(Interruption) -> Bool

    func readSlot() throws(Interruption) -> SlotContents
    /// False if the slot cannot be written; the successor then lives in this process alone.
    func fillSlot(_ session: StoredSession) throws(Interruption) -> Bool
    func emptySlot() throws(Interruption)
    /// Whether the slot outlives this process: the canopyd that started it lives, or the service
    /// manager keeps the descriptor.
    var isSlotKept: Bool { get }

    /// Reads the profile's item of an unlocked keyring, never raising a prompt. Of several the
    /// highest generation of a sign-in among `signIns` counts.
    func readItem(knowing signIns: KnownSignIns?) throws(Interruption) -> Reading<ItemContents>
    /// Writes the item that was read, or a new one in the default collection.
    func writeItem(_ session: StoredSession) throws(Interruption) -> Failure?
    /// Makes what was written survive a power cut (the directory's fsync).
    func syncKeyring() throws(Interruption) -> Failure?
    func deleteItem() throws(Interruption) -> Failure?
    /// Whether the item that was read last is there and cannot be read, whoever tries: it is damaged, or a
    /// later version's. Deleting takes it away.
    var holdsUnreadableItem: Bool { get }
    /// Whether the keyring's owner is known to write when it says it has.
    var keyringWritesAtOnce: Bool { get }

    func readState() throws(Interruption) -> Reading<StateContents>
    /// Writes the profile's file durably, then the copy of the marks in the runtime directory.
    func writeSignIns(_ signIns: KnownSignIns) throws(Interruption) -> Failure?
    /// The anchor; made if there is none.
    func makeAnchor() throws(Interruption) -> Reading<Anchor>

    /// Presents a refresh token: one request on a new connection, no retry, bounded in time.
    func present(_ refreshToken: Secret, to baseURL: String) throws(Interruption) -> Transmission
    /// Sends the password, or a second factor's code: one request, never repeated by itself.
    func signIn(at baseURL: String, publishableKey: String) throws(Interruption) -> Transmission
    /// Ends a session; `naming` the refresh token in the body, or with an empty one.
    func signOut(
        _ accessToken: Secret, naming refreshToken: Secret?, at baseURL: String
    ) throws(Interruption) -> Transmission

    /// Tells canopyd how far the exchange is.
    func announce(_ progress: ExchangeProgress) throws(Interruption)
}

/// What a step of reading found, or why it could not.
package enum Reading<Value> {
    case found(Value)
    case failed(Failure)
}

/// The slot's contents, secrets included.
package enum SlotContents: Sendable {
    case empty
    case torn
    case newerFormat(Int64?)
    case session(StoredSession)

    package var reading: SlotReading {
        switch self {
        case .empty: .empty
        case .torn: .torn
        case .newerFormat(let version): .newerFormat(version)
        case .session(let session): .session(session.header)
        }
    }
}

/// The item's contents, secrets included.
package enum ItemContents: Sendable {
    case none
    case otherMachine
    case session(StoredSession)

    package var reading: ItemReading {
        switch self {
        case .none: .none
        case .otherMachine: .otherMachine
        case .session(let session): .session(session.header)
        }
    }

    /// The session, if it is the one of that position.
    func session(at position: Generation) -> StoredSession? {
        guard case .session(let session) = self, session.header.position == position else {
            return nil
        }
        return session
    }
}

/// What the state directory holds for one profile on this machine.
package struct StateContents: Sendable {
    package var signIns: KnownSignIns?
    package var runtimeMarks: [SignInID: Int64]
    package var anchor: Anchor?

    package init(
        signIns: KnownSignIns?, runtimeMarks: [SignInID: Int64], anchor: Anchor?
    ) {
        self.signIns = signIns
        self.runtimeMarks = runtimeMarks
        self.anchor = anchor
    }
}

/// What an exchange tells before its end.
package enum ExchangeProgress: Equatable, Sendable {
    /// The token is about to be spent: from now on the exchange must not be killed.
    case presenting
    /// An attempt failed; the exchange tries again by itself.
    case retrying(Failure)
}

/// How an exchange ended.
package enum ExchangeOutcome: Sendable {
    /// There is a session: rotated, adopted, loaded, or signed in.
    case session(SessionReport)
    /// Nothing may be presented yet.
    case tooEarly(SessionReport, TimeSpan)
    case failed(Failure)
    /// The text is the server's words, if it said any; `account` is whose session it was, where a
    /// stored session told.
    case signInRequired(SignInReason, String, account: KnownSignIns.Account? = nil)
    case signedOut
    /// The server refused a sign-in, in its words.
    case rejected(Rejection)
    /// The server asks for a second factor.
    case challenged(SignInChallenge)
    /// What the server was asked for, rendered as JSON.
    case document(Secret)
    /// The server does not take the access token that it was asked with, in its words.
    case tokenRefused(String)
}

/// A session as canopyd may know it: no refresh token.
package struct SessionReport: Equatable, Sendable {
    package let header: SessionHeader
    package let accessToken: AccessToken?

    /// Whether the stored refresh token may have been presented already.
    package let isAmbiguous: Bool

    /// Why the successor is in the slot and not in the keyring; nil if it is stored.
    package let storeFailure: Failure?

    /// For how long the slot stays full on purpose, of what is stored in a keyring that writes late; nil
    /// if it is empty, or ``storeFailure`` says why it is not.
    package let slotKeptFor: TimeSpan?

    /// Whether what the slot keeps was stored twice, and not only once.
    package let isSlotRewritten: Bool

    package init(
        header: SessionHeader, accessToken: AccessToken?, isAmbiguous: Bool,
        storeFailure: Failure?, slotKeptFor: TimeSpan? = nil, isSlotRewritten: Bool = false
    ) {
        self.header = header
        self.accessToken = accessToken
        self.isAmbiguous = isAmbiguous
        self.storeFailure = storeFailure
        self.slotKeptFor = slotKeptFor
        self.isSlotRewritten = isSlotRewritten
    }

    package init(
        _ session: StoredSession, isAmbiguous: Bool, storeFailure: Failure? = nil,
        slotKeptFor: TimeSpan? = nil, isSlotRewritten: Bool = false
    ) {
        self.init(
            header: session.header, accessToken: session.accessToken, isAmbiguous: isAmbiguous,
            storeFailure: storeFailure, slotKeptFor: slotKeptFor, isSlotRewritten: isSlotRewritten)
    }
}

/// Why a sign-in brought nothing.
package struct Rejection: Equatable, Sendable {
    package enum Kind: UInt8, Sendable, CaseIterable {
        case credentials = 1
        case keyNotNative
        /// The request for it was malformed; nothing was sent.
        case malformed
    }

    package let kind: Kind
    package let detail: String

    package init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }
}
