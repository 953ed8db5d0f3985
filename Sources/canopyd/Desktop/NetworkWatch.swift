internal import CLinux
internal import Glibc
internal import LinuxSystem

/// Notices that the network changed: links, addresses and routes, as the kernel tells them.
///
/// Only listened to while something waits for the network, so that an idle daemon is not woken
/// by every lease that is renewed.
final class NetworkWatch {
    var onChange: () -> Void = {}

    private let loop: EventLoop
    private var socket: FileDescriptor?
    private var watch: DescriptorWatch?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Begins or ends to listen.
    func listen(_ isWanted: Bool) {
        guard isWanted != (watch != nil) else { return }
        guard isWanted else {
            watch = nil
            socket = nil
            return
        }
        let opened = clinux_network_changes()
        // A refusal is ignored: back-off finds a network that is back, only later.
        guard opened >= 0 else { return }
        socket = FileDescriptor(owning: opened)
        do throws(SystemError) {
            watch = try loop.watch(opened, [.readable]) { [unowned self] _ in
                drain(opened)
                onChange()
            }
        } catch {
            socket = nil
        }
    }

    // Before its descriptor.
    deinit { watch = nil }

    /// What changed does not matter, only that something did; an overrun says so too.
    private func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 8) { buffer in
            while recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
        }
    }
}
