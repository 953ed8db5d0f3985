internal import AgentCore
internal import CSystemd
internal import LinuxSystem

/// A message bus on the event loop: signals and calls, without ever waiting for either.
///
/// A bus that is not there is normal: on many machines there is neither a desktop nor logind.
final class Bus {
    enum Kind {
        case session
        case system
    }

    private let bus: OpaquePointer
    private let loop: EventLoop
    private var subscriptions: [BusSubscription] = []

    /// How long an answer is waited for; the caller is told that there is none.
    private static let callPatience = TimeSpan.seconds(2)

    /// Connects without waiting for the bus to answer; nil if there is none.
    init?(_ kind: Kind, on loop: EventLoop) {
        var made: OpaquePointer?
        let code =
            switch kind {
            case .session: sd_bus_open_user(&made)
            case .system: sd_bus_open_system(&made)
            }
        guard code >= 0, let made else { return nil }
        bus = made
        self.loop = loop
        loop.changed()
        guard sd_bus_attach_event(bus, loop.raw, Int32(SD_EVENT_PRIORITY_NORMAL)) >= 0 else {
            sd_bus_unref(bus)
            return nil
        }
    }

    /// Whether the bus still answers for us: it is gone after a disconnect.
    var isOpen: Bool { sd_bus_is_open(bus) > 0 }

    /// Calls `handler` for every message that matches the rule, as D-Bus writes it.
    func subscribe(_ rule: String, _ handler: @escaping (BusMessage) -> Void) {
        subscriptions.append(subscription(rule, handler))
    }

    /// The same for as long as the returned object lives.
    func subscription(
        _ rule: String, _ handler: @escaping (BusMessage) -> Void
    ) -> BusSubscription {
        let made = BusSubscription(on: loop, handler)
        loop.changed()
        // A refusal is ignored: without the signal, what it tells is found out by asking.
        _ = sd_bus_add_match_async(
            bus, &made.pointer, rule, BusSubscription.called, nil, made.object)
        return made
    }

    /// Calls `handler` once the connection is lost; a new one takes a new object.
    func onDisconnect(_ handler: @escaping () -> Void) {
        // libsystemd makes this message up itself: it needs no bus.
        let local = "org.freedesktop.DBus.Local"
        subscribe(
            "type='signal',sender='\(local)',interface='\(local)',member='Disconnected'"
        ) { _ in handler() }
    }

    /// Calls a method with text arguments; `handler` gets the answer, or nil for none or an error.
    ///
    /// It gets nothing once this object is gone.
    func call(
        _ destination: String, _ path: String, _ interface: String, _ method: String,
        _ arguments: [String] = [], _ handler: @escaping (BusMessage?) -> Void
    ) {
        request(destination, path, interface, method, arguments) { answer in
            handler(answer?.errorName == nil ? answer : nil)
        }
    }

    /// The same for a caller that tells one refusal from another: errors are answers too
    /// (``BusMessage/errorName``), and nil says that there was no way to ask.
    func request(
        _ destination: String, _ path: String, _ interface: String, _ method: String,
        _ arguments: [String] = [], _ handler: @escaping (BusMessage?) -> Void
    ) {
        request(
            destination, path, interface, method, arguments.map(BusArgument.text),
            patience: Bus.callPatience, handler)
    }

    /// The same with arguments of other types, and an answer that is waited for as long as `patience`
    /// says.
    func request(
        _ destination: String, _ path: String, _ interface: String, _ method: String,
        _ arguments: [BusArgument], patience: TimeSpan,
        _ handler: @escaping (BusMessage?) -> Void
    ) {
        var message: OpaquePointer?
        guard
            sd_bus_message_new_method_call(
                bus, &message, destination, path, interface, method) >= 0, let message
        else { return handler(nil) }
        defer { sd_bus_message_unref(message) }
        // Nobody is to be started, or asked something, by our asking.
        sd_bus_message_set_auto_start(message, 0)
        for argument in arguments {
            guard argument.append(to: message) else { return handler(nil) }
        }
        let reply = BusReply(handler)
        loop.changed()
        var slot: OpaquePointer?
        let code = sd_bus_call_async(
            bus, &slot, message, BusReply.called, reply.object,
            UInt64(patience.nanoseconds / 1000))
        guard code >= 0, let slot else { return handler(nil) }
        reply.live(as: slot)
    }

    deinit {
        subscriptions = []
        sd_bus_detach_event(bus)
        // Not flushed: a bus that never answers would be waited for, 90 s long.
        sd_bus_close_unref(bus)
    }
}

/// An argument of a call.
enum BusArgument {
    case text(String)
    case number(UInt32)
    case signedNumber(Int32)
    case byte(UInt8)
    case texts([String])
    /// From names to variants, each with a byte in it.
    case byteVariants([String: UInt8])

    /// Returns whether libsystemd took it.
    fileprivate func append(to message: OpaquePointer) -> Bool {
        switch self {
        case .text(let text):
            return text.withCString {
                sd_bus_message_append_basic(message, BusMessage.text, $0) >= 0
            }
        case .number(let number):
            return withUnsafePointer(to: number) {
                sd_bus_message_append_basic(message, BusMessage.number, $0) >= 0
            }
        case .signedNumber(let number):
            return withUnsafePointer(to: number) {
                sd_bus_message_append_basic(message, BusMessage.signedNumber, $0) >= 0
            }
        case .byte(let byte):
            return withUnsafePointer(to: byte) {
                sd_bus_message_append_basic(message, BusMessage.byte, $0) >= 0
            }
        case .texts(let texts):
            return sd_bus_message_open_container(message, BusMessage.array, "s") >= 0
                && texts.allSatisfy { BusArgument.text($0).append(to: message) }
                && sd_bus_message_close_container(message) >= 0
        case .byteVariants(let entries):
            return sd_bus_message_open_container(message, BusMessage.array, "{sv}") >= 0
                && entries.allSatisfy { name, byte in
                    sd_bus_message_open_container(message, BusMessage.entry, "sv") >= 0
                        && BusArgument.text(name).append(to: message)
                        && sd_bus_message_open_container(message, BusMessage.variant, "y") >= 0
                        && BusArgument.byte(byte).append(to: message)
                        && sd_bus_message_close_container(message) >= 0
                        && sd_bus_message_close_container(message) >= 0
                } && sd_bus_message_close_container(message) >= 0
        }
    }
}

/// A received message, while it is being handled.
struct BusMessage {
    fileprivate let pointer: OpaquePointer

    fileprivate static let text = CChar(UInt8(ascii: "s"))
    private static let boolean = CChar(UInt8(ascii: "b"))
    fileprivate static let number = CChar(UInt8(ascii: "u"))
    fileprivate static let signedNumber = CChar(UInt8(ascii: "i"))
    fileprivate static let byte = CChar(UInt8(ascii: "y"))
    private static let descriptor = CChar(UInt8(ascii: "h"))
    fileprivate static let variant = CChar(UInt8(ascii: "v"))
    fileprivate static let array = CChar(UInt8(ascii: "a"))
    fileprivate static let entry = CChar(UInt8(ascii: "e"))

    /// The unique name of whoever sent it; nil for libsystemd itself.
    var sender: String? { sd_bus_message_get_sender(pointer).map { String(cString: $0) } }

    /// The name of the error that the message is; nil if it is none.
    var errorName: String? {
        guard sd_bus_message_is_method_error(pointer, nil) > 0 else { return nil }
        return sd_bus_message_get_error(pointer)?.pointee.name.map { String(cString: $0) } ?? ""
    }

    /// The next argument, if it is text.
    func readText() -> String? {
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(pointer, BusMessage.text, &text) > 0, let text else {
            return nil
        }
        return String(cString: text)
    }

    /// The next argument, if it is a Boolean.
    func readBoolean() -> Bool? {
        var value: Int32 = 0
        guard sd_bus_message_read_basic(pointer, BusMessage.boolean, &value) > 0 else {
            return nil
        }
        return value != 0
    }

    /// The next argument, if it is a number of 32 bits without a sign.
    func readNumber() -> UInt32? {
        var value: UInt32 = 0
        guard sd_bus_message_read_basic(pointer, BusMessage.number, &value) > 0 else {
            return nil
        }
        return value
    }

    /// The next argument, if it is an array of texts.
    func readTexts() -> [String]? {
        guard sd_bus_message_enter_container(pointer, BusMessage.array, "s") > 0 else {
            return nil
        }
        var texts: [String] = []
        while let text = readText() { texts.append(text) }
        return texts
    }

    /// The next argument, if it is a variant with a Boolean in it.
    func readBooleanVariant() -> Bool? {
        guard sd_bus_message_enter_container(pointer, BusMessage.variant, "b") > 0 else {
            return nil
        }
        return readBoolean()
    }

    /// The names in the next argument, if it is a dictionary from text to variants.
    func readNames() -> [String]? {
        guard sd_bus_message_enter_container(pointer, BusMessage.array, "{sv}") > 0 else {
            return nil
        }
        var names: [String] = []
        while sd_bus_message_enter_container(pointer, BusMessage.entry, "sv") > 0 {
            guard let name = readText(), sd_bus_message_skip(pointer, "v") >= 0,
                sd_bus_message_exit_container(pointer) >= 0
            else { return nil }
            names.append(name)
        }
        return names
    }

    /// A copy of the next argument, if it is a descriptor: the message closes its own.
    func readDescriptor() -> Int32? {
        var value: Int32 = -1
        guard sd_bus_message_read_basic(pointer, BusMessage.descriptor, &value) > 0 else {
            return nil
        }
        return value
    }
}

/// A subscription; it ends with the object.
final class BusSubscription {
    fileprivate var pointer: OpaquePointer?
    private let loop: EventLoop
    private let handler: (BusMessage) -> Void

    fileprivate init(on loop: EventLoop, _ handler: @escaping (BusMessage) -> Void) {
        self.loop = loop
        self.handler = handler
    }

    fileprivate var object: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    fileprivate static let called: sd_bus_message_handler_t = { message, object, _ in
        if let message, let object {
            let subscription = Unmanaged<BusSubscription>.fromOpaque(object)
                .takeUnretainedValue()
            // Handling a message may end the subscription.
            withExtendedLifetime(subscription) {
                subscription.handler(BusMessage(pointer: message))
            }
        }
        return 0
    }

    deinit {
        // The bus is told, if it is still there.
        loop.changed()
        sd_bus_slot_unref(pointer)
    }
}

/// A call that waits for its answer, which comes once, or never if the connection is closed first.
private final class BusReply {
    private let handler: (BusMessage?) -> Void

    init(_ handler: @escaping (BusMessage?) -> Void) {
        self.handler = handler
    }

    var object: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// Lives until libsystemd forgets the call: with the answer, or with the connection.
    func live(as slot: OpaquePointer) {
        _ = Unmanaged.passRetained(self)
        sd_bus_slot_set_destroy_callback(slot) { object in
            if let object { Unmanaged<BusReply>.fromOpaque(object).release() }
        }
        // The connection's from now on, and no longer ours.
        sd_bus_slot_set_floating(slot, 1)
        sd_bus_slot_unref(slot)
    }

    static let called: sd_bus_message_handler_t = { message, object, _ in
        guard let object else { return 0 }
        let reply = Unmanaged<BusReply>.fromOpaque(object).takeUnretainedValue()
        // Handling the answer may close the connection.
        withExtendedLifetime(reply) {
            reply.handler(message.map(BusMessage.init(pointer:)))
        }
        return 0
    }
}
