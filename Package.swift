// swift-tools-version: 6.2
import PackageDescription

/// Swift 6 mode, complete concurrency checking, and no warning that anybody has to get used to.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// Whether scripts/sanitize builds: a sanitizer's library has to be loaded by the dynamic linker.
let isSanitized = Context.environment["CANOPYD_SANITIZED"] != nil

/// The same for what ``linkedSmall(_:)`` links: each function in a section of its own, so that the
/// linker can leave it out, or put it beside what runs with it.
let inSections: [SwiftSetting] =
    strict + [
        .unsafeFlags(["-Xfrontend", "-function-sections"], .when(configuration: .release))
    ]

/// What keeps a program small that stays, or that is started for every prompt.
///
/// The C++ library that the Swift runtime needs is linked in and no megabyte of its own, nothing is
/// exported, and what runs stands side by side (bench/order-functions); gold cannot do that.
func linkedSmall(_ program: String) -> [LinkerSetting] {
    let directory = "\(Context.packageDirectory)/link"
    return [
        .unsafeFlags(
            [
                "-use-ld=lld", "-L", directory, "-Xclang-linker", "-static-libgcc",
                "-Xlinker", "--no-export-dynamic", "-Xlinker", "--no-warn-symbol-ordering",
                "-Xlinker", "--symbol-ordering-file=\(directory)/\(program)-functions",
            ], .when(configuration: .release))
    ]
}

let package = Package(
    name: "canopyd",
    products: [
        .executable(name: "canopyd", targets: ["canopyd"]),
        .executable(name: "canopyd-exchange", targets: ["canopyd-exchange"]),
        .executable(name: "canopyctl", targets: ["canopyctl"]),
        .executable(name: "canopy-sandbox", targets: ["canopy-sandbox"]),
    ],
    targets: [
        // Every decision and every format: values, on the standard library alone.
        .target(name: "AgentCore", swiftSettings: inSections),
        // The kernel's calls as Swift says them: locked memory, clocks, files, descriptors.
        .target(
            name: "LinuxSystem", dependencies: ["AgentCore", "CArguments", "CLinux"],
            swiftSettings: inSections),
        // The arguments, which only C is given.
        .target(name: "CArguments"),
        .executableTarget(
            name: "canopyd", dependencies: ["AgentCore", "LinuxSystem", "CLinux", "CSystemd"],
            swiftSettings: inSections, linkerSettings: linkedSmall("canopyd")),
        .executableTarget(
            name: "canopyd-exchange",
            dependencies: ["AgentCore", "LinuxSystem", "CLinux", "CLibsecret", "CCurl"],
            swiftSettings: strict),
        // Static, so that a shell prompt pays for no dynamic linking.
        .executableTarget(
            name: "canopyctl", dependencies: ["AgentCore", "LinuxSystem", "CLinux"],
            swiftSettings: inSections,
            linkerSettings: (isSanitized ? [] : [.unsafeFlags(["-static-executable"])])
                + linkedSmall("canopyctl")),
        .target(name: "SandboxRules", dependencies: ["AgentCore"], swiftSettings: strict),
        .executableTarget(
            name: "canopy-sandbox",
            dependencies: ["AgentCore", "LinuxSystem", "CLinux", "SandboxRules"],
            swiftSettings: strict),
        // The rotation's decisions and procedures in a world where everything goes wrong.
        .target(
            name: "Simulation", dependencies: ["AgentCore", "SandboxRules"], swiftSettings: strict),
        .executableTarget(
            name: "canopy-simulate", dependencies: ["Simulation"], swiftSettings: strict),
        .executableTarget(
            name: "canopy-fleet", dependencies: ["Simulation"], swiftSettings: strict),
        .systemLibrary(
            name: "CLibsecret", pkgConfig: "libsecret-1", providers: [.apt(["libsecret-1-dev"])]),
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .testTarget(
            name: "AgentCoreTests", dependencies: ["AgentCore"],
            resources: [.copy("JSONTestSuite")], swiftSettings: strict),
        .testTarget(
            name: "LinuxSystemTests", dependencies: ["AgentCore", "LinuxSystem"],
            swiftSettings: strict),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Simulation", "AgentCore", "SandboxRules"], swiftSettings: strict),
        .testTarget(
            name: "SandboxTests", dependencies: ["SandboxRules", "AgentCore"],
            swiftSettings: strict),
        .testTarget(
            name: "CanopyctlTests", dependencies: ["AgentCore", "LinuxSystem", "CLinux"],
            swiftSettings: strict),
        .testTarget(
            name: "ExchangeTests", dependencies: ["canopyd-exchange", "CCurl"],
            swiftSettings: strict),
        .testTarget(
            name: "DaemonTests", dependencies: ["AgentCore", "LinuxSystem", "CLinux"],
            swiftSettings: strict),
    ]
)
