internal import Glibc

/// The version of systemd that is installed on this machine.
package struct SystemdVersion: Sendable {
    /// The number that releases are known by, as 252.
    package let major: Int

    /// With the distribution's part, as `252` or `257.8-1~deb13u2`.
    package let text: String

    /// Whether systemd started this machine, as sd_booted(3) finds out: else its commands mend nothing.
    package static var isRunning: Bool { access("/run/systemd/system", F_OK) == 0 }

    /// nil where there is none.
    ///
    /// The library's name has it, so that no program is started for it.
    package static func installed() -> SystemdVersion? {
        let directories = [
            "/usr/lib/systemd", "/usr/lib/x86_64-linux-gnu/systemd",
            "/usr/lib/aarch64-linux-gnu/systemd", "/usr/lib64/systemd",
        ]
        for directory in directories {
            do throws(SystemError) {
                for name in try Directory.names(directory) {
                    guard name.hasPrefix("libsystemd-shared-"), name.hasSuffix(".so") else {
                        continue
                    }
                    let text = String(name.dropFirst(18).dropLast(3))
                    guard let major = Int(text.prefix { $0 >= "0" && $0 <= "9" }) else { continue }
                    return SystemdVersion(major: major, text: text)
                }
            } catch {
                continue
            }
        }
        return nil
    }
}
