// swift-tools-version: 6.3

import PackageDescription

/// Every room is compiled by the same rules.
let house: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("InferIsolatedConformances"),
  // Fault points are a tool of tests. A release build holds none unless the trait asks for them.
  .define("FAULT_POINTS", .when(configuration: .debug)),
  .define("FAULT_POINTS", .when(traits: ["FaultPoints"])),
]

/// As in the rules of the house: C code that only fault points need.
let faultPoints: [CSetting] = [
  .define("FAULT_POINTS", .when(configuration: .debug)),
  .define("FAULT_POINTS", .when(traits: ["FaultPoints"])),
]

/// In Swift 5 mode a closure of a user's actor that is called elsewhere ends the program.
let shim: [SwiftSetting] = [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]

/// Tests by the rules of the house; they see the system, and what tests have in common.
func tests(
  _ name: String, _ rooms: Target.Dependency..., settings: [SwiftSetting] = []
) -> Target {
  .testTarget(
    name: name, dependencies: ["WormholeSyscalls", "TestSupport", "TestTraits"] + rooms,
    swiftSettings: house + settings)
}

/// The sources of the modules of Apple's that the command contains and `wormhole new shim` writes.
func shims(_ files: [String]) -> [Resource] {
  files.map { .embedInCode("../../Tests/Shims/\($0).swift") }
}

let package = Package(
  name: "wormhole",
  products: [
    .library(name: "Wormhole", targets: ["Wormhole"]),
    .library(name: "WormholeTesting", targets: ["WormholeTesting"]),
    .library(name: "WormholeTestingTraits", targets: ["WormholeTestingTraits"]),
    .library(name: "AppGroups", targets: ["AppGroups"]),
    .library(name: "MMWormhole", targets: ["MMWormhole"]),
    .library(name: "WatchConnectivity", targets: ["WatchConnectivity"]),
    .library(name: "Communicator", targets: ["Communicator"]),
    .executable(name: "wormhole", targets: ["WormholeCommand"]),
    .executable(name: "wormhole-stress", targets: ["WormholeStress"]),
    .executable(name: "cinematime", targets: ["WormholeCinemaTimeCommand"]),
    .executable(name: "wormhole-bench", targets: ["WormholeBenchmarks"]),
  ],
  traits: [
    .trait(
      name: "FaultPoints",
      description: "Build with fault points, so that a release build can be tested under faults.")
  ],
  targets: [
    .target(name: "WormholeCLinux", cSettings: faultPoints),
    .target(name: "WormholeLibC", swiftSettings: house),
    .target(
      name: "WormholeSyscalls", dependencies: ["WormholeCLinux", "WormholeLibC"],
      swiftSettings: house),
    .target(name: "WormholeCChecksum"),
    .target(
      name: "WormholePropertyLists", dependencies: ["WormholeCChecksum"], swiftSettings: house),
    .target(
      name: "WormholeRelay", dependencies: ["WormholePropertyLists", "WormholeSyscalls"],
      swiftSettings: house),
    .target(name: "WormholeWeb", dependencies: ["WormholeSyscalls"], swiftSettings: house),
    .target(
      name: "WormholeContainerStorage",
      dependencies: ["WormholePropertyLists", "WormholeSyscalls"],
      swiftSettings: house),
    .target(
      name: "Wormhole",
      dependencies: ["WormholePropertyLists", "WormholeContainerStorage", "WormholeSyscalls"],
      swiftSettings: house),
    .target(
      name: "WormholeTesting",
      dependencies: ["WormholeContainerStorage", "WormholeSyscalls", "Wormhole"],
      swiftSettings: house),
    // Apart from `WormholeTesting`, which programs without Swift Testing may link too.
    .target(
      name: "WormholeTestingTraits", dependencies: ["WormholeTesting"], swiftSettings: house),
    .target(
      name: "WormholeDropIns",
      dependencies: [
        "WormholePropertyLists", "WormholeContainerStorage", "WormholeSyscalls", "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "AppGroups",
      dependencies: [
        "WormholeDropIns", "WormholePropertyLists", "WormholeContainerStorage", "WormholeSyscalls",
        "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "MMWormhole",
      dependencies: [
        "WormholeDropIns", "WormholePropertyLists", "WormholeContainerStorage", "WormholeSyscalls",
        "WatchConnectivity",
        "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "WormholeCommandLine",
      dependencies: [
        "WormholePropertyLists", "WormholeContainerStorage", "WormholeSyscalls", "WormholeWeb",
      ],
      swiftSettings: house),
    .target(
      name: "WormholePairings",
      dependencies: ["WormholeContainerStorage", "WormholeSyscalls", "Wormhole"],
      swiftSettings: house),
    .target(
      name: "Communicator",
      dependencies: [
        "WormholeDropIns", "WormholeContainerStorage", "WormholeSyscalls", "WatchConnectivity",
      ],
      swiftSettings: house),
    .target(
      name: "WatchConnectivity",
      dependencies: [
        "AppGroups", "WormholeDropIns", "WormholePairings", "WormholePropertyLists",
        "WormholeContainerStorage", "WormholeSyscalls",
        "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "WormholeBridge",
      dependencies: [
        "WormholeRelay", "WormholePropertyLists", "WormholeContainerStorage",
        "WormholeSyscalls", "Wormhole",
      ],
      swiftSettings: house),
    .executableTarget(
      name: "WormholeCommand",
      dependencies: [
        "WormholeBridge", "WormholeCommandLine", "WormholePairings", "WormholePropertyLists",
        "WormholeContainerStorage", "WormholeRelay", "WormholeSyscalls", "WormholeWeb",
        "Wormhole",
      ],
      resources: shims([
        "Combine/Cancellables", "Combine/Failures", "Combine/Joining", "Combine/Notifications",
        "Combine/ObservableObject", "Combine/Observer", "Combine/Operators", "Combine/Published",
        "Combine/Publisher", "Combine/Schedulers", "Combine/Sinks", "Combine/Subjects",
        "Combine/Timing", "Names/CombineNames", "WatchKit/WKBackgroundTasks",
        "WatchKit/WKExtension", "WatchKit/WKInterfaceDevice", "os/Logger",
        "os/OSAllocatedUnfairLock", "os/OSLogCalls", "os/OSLogFormatting", "os/OSLogMessage",
      ]),
      swiftSettings: house),
    .target(
      name: "WormholeCinemaTime",
      dependencies: ["WormholeSyscalls", "WatchConnectivity", "Wormhole"],
      resources: [.embedInCode("../../Fixtures/Movies.json")], swiftSettings: house),
    .executableTarget(
      name: "WormholeCinemaTimeCommand",
      dependencies: [
        "WormholeCinemaTime", "WormholeCommandLine", "WormholePropertyLists",
        "WormholeContainerStorage", "WormholeSyscalls", "WormholeWeb",
        "WatchConnectivity", "Wormhole",
      ], swiftSettings: house),
    .executableTarget(
      name: "WormholeBenchmarks",
      dependencies: [
        "WormholeAllocationCounter", "WormholeCFloor", "AppGroups", "MMWormhole",
        "WormholePairings", "WormholePropertyLists", "WormholeContainerStorage",
        "WormholeSyscalls", "WatchConnectivity", "Wormhole",
      ], path: "Tests/WormholeBenchmarks", swiftSettings: house),
    .executableTarget(
      name: "WormholeStress",
      dependencies: [
        "WormholeBridge", "WormholeCLinux", "WormholeCTesting", "WormholeCommandLine",
        "WormholeContainerStorage", "WormholeHubProtocol", "WormholePropertyLists",
        "WormholeRelay", "WormholeSyscalls", "Wormhole",
      ],
      path: "Tests/WormholeStress", swiftSettings: house),
    .target(
      name: "WormholeHubProtocol", dependencies: ["WormholePropertyLists", "WormholeSyscalls"],
      path: "Tests/WormholeHubProtocol", swiftSettings: house),
    .target(name: "WormholeAllocationCounter", path: "Tests/WormholeAllocationCounter"),
    .target(name: "WormholeCFloor", path: "Tests/WormholeCFloor"),

    .target(
      name: "TestTraits", dependencies: ["WormholeSyscalls"], path: "Tests/TestTraits",
      swiftSettings: house
    ),
    .target(
      name: "TestSupport",
      dependencies: [
        "WormholeCTesting", "WormholeContainerStorage", "WormholeHubProtocol",
        "WormholePropertyLists", "WormholeSyscalls",
      ],
      path: "Tests/TestSupport",
      swiftSettings: house),
    // A program for tests to start, kill and stop.
    .executableTarget(
      name: "TestPeer",
      dependencies: [
        "WormholeCLinux", "WormholeCTesting", "WormholePropertyLists", "WormholeContainerStorage",
        "WormholeSyscalls",
        "TestSupport",
        "Wormhole",
        "WormholeBridge",
        "WormholeRelay",
        "WormholeTesting",
      ],
      path: "Tests/TestPeer", swiftSettings: house),
    // The trial of bridges between machines. It is no product: it uses what tests have in common,
    // and a product's targets have names that no target of a user may have.
    .executableTarget(
      name: "WormholeTrial",
      dependencies: [
        "WormholeCommandLine", "WormholeContainerStorage", "WormholeSyscalls", "TestSupport",
        "Wormhole",
      ],
      path: "Tests/WormholeTrial", swiftSettings: house),
    .target(name: "WormholeCTesting", path: "Tests/WormholeCTesting"),
    tests("SyscallsTests", "TestPeer"),
    .testTarget(
      name: "PropertyListsTests",
      dependencies: [
        "WormholePropertyLists", "PropertyListFuzzing", "TestPeer", "TestSupport", "TestTraits",
      ],
      swiftSettings: house),
    .target(
      name: "PropertyListFuzzing", dependencies: ["WormholeCTesting", "WormholePropertyLists"],
      path: "Tests/PropertyListFuzzing", swiftSettings: house),
    .executableTarget(
      name: "PropertyListFuzzer", dependencies: ["PropertyListFuzzing"],
      path: "Tests/PropertyListFuzzer", swiftSettings: house),
    tests("WebTests", "WormholePropertyLists", "WormholeWeb"),
    tests("RelayTests", "WormholeHubProtocol", "WormholePropertyLists", "WormholeRelay"),
    tests(
      "ContainerStorageTests", "WormholePropertyLists", "WormholeContainerStorage", "TestPeer",
      "Wormhole"),
    tests(
      "WormholeTests", "WormholePropertyLists", "WormholeContainerStorage", "TestPeer", "Wormhole",
      "WormholeTesting"),
    tests(
      "WormholeTestingTests", "TestPeer", "Wormhole", "WormholeCommand", "WormholeTesting",
      "WormholeTestingTraits"),
    tests(
      "BridgeTests", "WormholeHubProtocol", "WormholePropertyLists", "WormholeContainerStorage",
      "Wormhole", "WormholeBridge", "WormholeRelay", "WormholeTrial", "TestPeer"),
    tests("DropInsTests", "WormholeDropIns", "WormholePropertyLists", "WormholeContainerStorage"),
    tests(
      "AppGroupsTests",
      "AppGroups", "DropInPeer", "WormholeDropIns", "WormholeContainerStorage", "Wormhole",
      "WormholeCommand"),
    tests(
      "MMWormholeTests",
      "AppGroups", "DropInPeer", "WormholeDropIns", "MMWormhole", "WormholeContainerStorage",
      "WatchConnectivity",
      "Wormhole"),
    tests(
      "WatchConnectivityTests",
      "DropInPeer", "WormholeDropIns", "FixturePhone", "FixtureWatch", "WormholePairings",
      "WormholePropertyLists",
      "WormholeContainerStorage", "WatchConnectivity", "Wormhole"),
    // An app as they are written for devices, once for each side: the sources are the same.
    .executableTarget(
      name: "FixturePhone", dependencies: ["WatchConnectivity"], path: "Tests/WatchFixture/Phone",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error), .define("PHONE")]),
    .executableTarget(
      name: "FixtureWatch", dependencies: ["WatchConnectivity"], path: "Tests/WatchFixture/Watch",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error), .define("WATCH")]),
    tests(
      "CommunicatorTests", "DropInPeer", "Communicator", "WormholeDropIns", "WormholePairings",
      "Wormhole"),
    // Code as people have it, by the rules that they have, and without a warning.
    .testTarget(
      name: "SwiftFiveTests",
      dependencies: [
        "AppGroups", "Communicator", "MMWormhole", "TestSupport", "TestTraits", "WatchConnectivity",
      ],
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "SwiftSixTests",
      dependencies: [
        "AppGroups", "Communicator", "MMWormhole", "TestSupport", "TestTraits", "WatchConnectivity",
        "WormholeTesting",
      ],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    // Modules of Apple's, as users build them in packages of their own, and code that imports them.
    .target(name: "Combine", path: "Tests/Shims/Combine", swiftSettings: shim),
    .target(name: "WatchKit", path: "Tests/Shims/WatchKit", swiftSettings: shim),
    .target(name: "os", path: "Tests/Shims/os", swiftSettings: shim),
    .testTarget(
      name: "ShimsFiveTests",
      dependencies: [
        "Combine", "DropInPeer", "WatchKit", "os", "TestSupport", "TestTraits", "WatchConnectivity",
      ],
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "ShimsSixTests",
      dependencies: [
        "Combine", "WatchKit", "os", "TestSupport", "TestTraits", "WatchConnectivity",
      ],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    // A program that uses the drop-in modules, for tests to start.
    .executableTarget(
      name: "DropInPeer",
      dependencies: [
        "AppGroups", "WormholeCTesting", "Communicator", "MMWormhole", "WormholeSyscalls",
        "TestSupport",
        "WatchConnectivity", "Wormhole", "os",
      ],
      path: "Tests/DropInPeer", swiftSettings: house),
    tests("ServersTests"),
    tests("StressTests", "WormholeContainerStorage", "WormholeStress"),
    tests(
      "CommandTests",
      "WormholeCommandLine", "WormholePropertyLists", "WormholeContainerStorage", "TestPeer",
      "Wormhole", "WormholeCommand"),
    tests(
      "CinemaTimeTests",
      "WormholeCinemaTime", "WormholeCinemaTimeCommand", "WormholeCommandLine",
      "WormholePropertyLists",
      "WormholeContainerStorage", "WatchConnectivity", "Wormhole"),
    tests(
      "ReadmeTests",
      "AppGroups", "WormholeCinemaTimeCommand", "WormholeCommandLine", "Communicator",
      "ConfigurationProgram",
      "FirstProgram", "MMWormhole", "ReadmeProgram", "WatchConnectivity", "Wormhole",
      "WormholeCommand", "WormholeTesting"),
    // The programs in README and in the first articles, by a user's rules; tests run them.
    .executableTarget(
      name: "ReadmeProgram", dependencies: ["Wormhole"], path: "Tests/ReadmeProgram",
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    .executableTarget(
      name: "FirstProgram", dependencies: ["Wormhole"], path: "Tests/FirstProgram",
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    .executableTarget(
      name: "ConfigurationProgram", dependencies: ["Wormhole"], path: "Tests/ConfigurationProgram",
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    // They scan every byte of the sources, which takes ten times as long without optimization.
    // SwiftPM refuses such flags only in targets that a product reaches.
    tests("TidyTests", settings: [.unsafeFlags(["-O"])]),
  ],
  swiftLanguageModes: [.v6]
)
