import Foundation
import Testing

@Suite("Where name servers do not answer", .timeLimit(.minutes(25)))
struct SilentResolverTests {
    @Test("A connection is given up in its time, whatever the resolver's own patience is")
    func bounded() throws {
        let directory = try TestDirectory()
        let network = try Namespaces(in: directory)
        try silenceNameServers(of: network, directory)
        let stage = try Stage(in: network)
        try stage.killDaemon()
        // For each name server and each name that is tried.
        try stage.startDaemon(with: ["RES_OPTIONS": "timeout:30 attempts:5"])
        // The client waits for a minute, and the resolver for two and a half at the least.
        let refused = try stage.tryLogin(url: "https://canopy.example")
        #expect(refused.status == 503)
        #expect(try refused.code == "server_unreachable")
        #expect(try refused.json.text("detail").contains("timed out"))
        try eventually("no exchange stays behind") { try stage.exchanges().isEmpty }
    }

    /// Has somebody listen at the addresses of this machine's name servers who says nothing.
    private func silenceNameServers(
        of network: Namespaces, _ directory: TestDirectory
    ) throws {
        try directory.write(
            """
            import ipaddress, os, socket, subprocess, sys, time
            parent = os.getppid()
            with open("/etc/resolv.conf") as file:
                lines = [line.split() for line in file]
            servers = [line[1].split("%")[0] for line in lines if line[:1] == ["nameserver"]]
            sockets = []
            for server in servers[:3] or ["127.0.0.1"]:
                address = ipaddress.ip_address(server)
                if not address.is_loopback:
                    subprocess.run(["ip", "address", "add", server, "dev", "lo"], check=True)
                family = socket.AF_INET if address.version == 4 else socket.AF_INET6
                sockets.append(socket.socket(family, socket.SOCK_DGRAM))
                sockets[-1].bind((server, 53))
            open(sys.argv[1], "w").close()
            while os.getppid() == parent:
                time.sleep(0.2)

            """, "silent.py")
        let sign = directory.path + "/silent"
        try network.run("python3 '\(directory.path)/silent.py' '\(sign)' &")
        try eventually("somebody listens at the name servers' addresses") {
            FileManager.default.fileExists(atPath: sign)
        }
    }
}
