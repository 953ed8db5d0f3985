internal import AgentCore
internal import CSystemd
internal import LinuxSystem

/// What this machine and this boot are called.
enum MachineID {
    /// Ours alone: a hash of the machine id, from which the id cannot be told.
    private static let application = sd_id128_t(
        bytes: (
            0x6e, 0x1b, 0x0c, 0x54, 0x92, 0x4d, 0x4f, 0x7a, 0xa3, 0x39, 0x5d, 0x08, 0xc7, 0x11,
            0xe2, 0x40
        ))

    /// The machine's name in the keyring, 32 hexadecimal digits.
    static func forKeyring() throws(SystemError) -> String {
        var id = sd_id128_t()
        let code = sd_id128_get_machine_app_specific(application, &id)
        guard code >= 0 else {
            throw SystemError("sd_id128_get_machine", code: -code, subject: "/etc/machine-id")
        }
        return text(id)
    }

    static func boot() throws(SystemError) -> BootID {
        var id = sd_id128_t()
        let code = sd_id128_get_boot(&id)
        guard code >= 0 else {
            throw SystemError("sd_id128_get_boot", code: -code)
        }
        return BootID(text(id))
    }

    private static func text(_ id: sd_id128_t) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 33) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            sd_id128_to_string(id, start)
            return String(cString: start)
        }
    }
}
