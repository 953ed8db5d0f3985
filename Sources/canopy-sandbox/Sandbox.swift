internal import AgentCore
internal import CLinux
internal import Glibc
internal import LinuxSystem
internal import SandboxRules

/// A local Canopy for trying, testing and developing.
@main
enum Sandbox {
    static func main() {
        // Whoever reads the greeting may leave after it.
        signal(SIGPIPE, SIG_IGN)
        let options: Options
        do throws(Options.Unusable) {
            switch try Options.parse() {
            case .serve(let given): options = given
            case .help: return show(help)
            case .version: return show("canopy-sandbox \(Version.text)\n")
            }
        } catch {
            say("canopy-sandbox: \(error.text)\nTry canopy-sandbox --help.\n", to: 2)
            exit(2)
        }
        do throws(SystemError) {
            let listener = try Listener(port: options.port)
            let canopy = Canopy(options, port: listener.port)
            say(greeting(canopy), to: 1)
            var server = Server(listener: listener, canopy: canopy)
            try server.run()
        } catch {
            say("canopy-sandbox: \(error)\n", to: 2)
            exit(1)
        }
    }

    /// One fact a line; a test reads it, and a person signs in with it.
    private static func greeting(_ canopy: Canopy) -> String {
        var text = "listening \(canopy.issuer)\n"
        text += "native key \(canopy.nativeKey.text)\n"
        text += "web key \(canopy.webKey.text)\n"
        for person in canopy.people {
            text += "identity \(person.email) password \(person.password)\n"
        }
        let second = Canopy.second
        text += "second factor \(second.email) totp \(second.totp)\n"
        text += "second factor \(second.email) email_otp \(second.emailCode)\n"
        for code in second.recoveryCodes {
            text += "second factor \(second.email) recovery_code \(code)\n"
        }
        return text
    }

    /// Prints what was asked for.
    private static func show(_ text: String) {
        do throws(SystemError) {
            try StandardOutput.write(text)
        } catch {
            say("canopy-sandbox: \(error)\n", to: 2)
            exit(1)
        }
    }

    private static func say(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            // Nobody reads us: the sandbox serves on without an audience.
            guard count > 0 || errno == EINTR else { return }
            rest = rest.dropFirst(max(count, 0))
        }
    }
}
