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

/// Tests by the rules of the house; they see the system, and what tests have in common.
func tests(_ name: String, _ rooms: Target.Dependency...) -> Target {
  .testTarget(
    name: name, dependencies: ["Syscalls", "TestSupport", "TestTraits"] + rooms,
    swiftSettings: house)
}

let package = Package(
  name: "wormhole",
  products: [
    .library(name: "Wormhole", targets: ["Wormhole"]),
    .library(name: "WormholeTesting", targets: ["WormholeTesting"]),
    .library(name: "AppGroups", targets: ["AppGroups"]),
    .library(name: "MMWormhole", targets: ["MMWormhole"]),
    .library(name: "WatchConnectivity", targets: ["WatchConnectivity"]),
    .library(name: "Communicator", targets: ["Communicator"]),
    .executable(name: "wormhole", targets: ["WormholeCommand"]),
    .executable(name: "wormhole-stress", targets: ["WormholeStress"]),
    .executable(name: "cinematime", targets: ["CinemaTimeCommand"]),
    .executable(name: "wormhole-bench", targets: ["WormholeBenchmarks"]),
  ],
  traits: [
    .trait(
      name: "FaultPoints",
      description: "Build with fault points, so that a release build can be tested under faults.")
  ],
  targets: [
    .target(name: "CLinux"),
    .target(name: "Syscalls", dependencies: ["CLinux"], swiftSettings: house),
    .target(name: "CChecksum"),
    .target(name: "PropertyLists", dependencies: ["CChecksum"], swiftSettings: house),
    .target(
      name: "WormholeContainerStorage", dependencies: ["PropertyLists", "Syscalls"],
      swiftSettings: house),
    .target(
      name: "Wormhole", dependencies: ["PropertyLists", "WormholeContainerStorage", "Syscalls"],
      swiftSettings: house),
    .target(
      name: "WormholeTesting", dependencies: ["WormholeContainerStorage", "Syscalls", "Wormhole"],
      swiftSettings: house),
    .target(
      name: "DropIns",
      dependencies: ["PropertyLists", "WormholeContainerStorage", "Syscalls", "Wormhole"],
      swiftSettings: house),
    .target(
      name: "AppGroups",
      dependencies: [
        "DropIns", "PropertyLists", "WormholeContainerStorage", "Syscalls", "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "MMWormhole",
      dependencies: [
        "DropIns", "PropertyLists", "WormholeContainerStorage", "Syscalls", "WatchConnectivity",
        "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "CommandLine", dependencies: ["PropertyLists", "WormholeContainerStorage", "Syscalls"],
      swiftSettings: house),
    .target(
      name: "Pairings", dependencies: ["WormholeContainerStorage", "Syscalls", "Wormhole"],
      swiftSettings: house),
    .target(
      name: "Communicator",
      dependencies: ["DropIns", "WormholeContainerStorage", "Syscalls", "WatchConnectivity"],
      swiftSettings: house),
    .target(
      name: "WatchConnectivity",
      dependencies: [
        "AppGroups", "DropIns", "Pairings", "PropertyLists", "WormholeContainerStorage", "Syscalls",
        "Wormhole",
      ],
      swiftSettings: house),
    .executableTarget(
      name: "WormholeCommand",
      dependencies: [
        "CommandLine", "Pairings", "PropertyLists", "WormholeContainerStorage", "Syscalls",
        "Wormhole",
      ],
      swiftSettings: house),
    .target(
      name: "CinemaTime",
      dependencies: ["Syscalls", "WatchConnectivity", "Wormhole"],
      resources: [.embedInCode("../../Fixtures/Movies.json")], swiftSettings: house),
    .executableTarget(
      name: "CinemaTimeCommand",
      dependencies: [
        "CinemaTime", "CommandLine", "PropertyLists", "WormholeContainerStorage", "Syscalls",
        "WatchConnectivity", "Wormhole",
      ], swiftSettings: house),
    .executableTarget(
      name: "WormholeBenchmarks",
      dependencies: [
        "AllocationCounter", "CFloor", "MMWormhole", "Pairings", "PropertyLists",
        "WormholeContainerStorage",
        "Syscalls", "WatchConnectivity", "Wormhole",
      ], path: "Tests/WormholeBenchmarks", swiftSettings: house),
    .executableTarget(
      name: "WormholeStress",
      dependencies: [
        "CTesting", "CommandLine", "PropertyLists", "WormholeContainerStorage", "Syscalls",
        "Wormhole",
      ],
      path: "Tests/WormholeStress", swiftSettings: house),
    .target(name: "AllocationCounter", path: "Tests/AllocationCounter"),
    .target(name: "CFloor", path: "Tests/CFloor"),

    .target(
      name: "TestTraits", dependencies: ["Syscalls"], path: "Tests/TestTraits", swiftSettings: house
    ),
    .target(
      name: "TestSupport",
      dependencies: ["CTesting", "PropertyLists", "WormholeContainerStorage", "Syscalls"],
      path: "Tests/TestSupport",
      swiftSettings: house),
    // A program for tests to start, kill and stop.
    .executableTarget(
      name: "TestPeer",
      dependencies: [
        "CTesting", "PropertyLists", "WormholeContainerStorage", "Syscalls", "TestSupport",
        "Wormhole",
        "WormholeTesting",
      ],
      path: "Tests/TestPeer", swiftSettings: house),
    .target(name: "CTesting", path: "Tests/CTesting"),
    tests("SyscallsTests", "TestPeer"),
    .testTarget(
      name: "PropertyListsTests",
      dependencies: ["PropertyLists", "PropertyListFuzzing", "TestSupport", "TestTraits"],
      swiftSettings: house),
    .target(
      name: "PropertyListFuzzing", dependencies: ["PropertyLists", "Syscalls"],
      path: "Tests/PropertyListFuzzing", swiftSettings: house),
    .executableTarget(
      name: "PropertyListFuzzer", dependencies: ["PropertyListFuzzing"],
      path: "Tests/PropertyListFuzzer", swiftSettings: house),
    tests(
      "ContainerStorageTests", "PropertyLists", "WormholeContainerStorage", "TestPeer", "Wormhole"),
    tests("WormholeTests", "PropertyLists", "WormholeContainerStorage", "TestPeer", "Wormhole"),
    tests("WormholeTestingTests", "TestPeer", "Wormhole", "WormholeCommand", "WormholeTesting"),
    tests("DropInsTests", "DropIns", "PropertyLists", "WormholeContainerStorage"),
    tests(
      "AppGroupsTests",
      "AppGroups", "DropInPeer", "DropIns", "WormholeContainerStorage", "Wormhole",
      "WormholeCommand"),
    tests(
      "MMWormholeTests",
      "AppGroups", "DropInPeer", "DropIns", "MMWormhole", "WormholeContainerStorage",
      "WatchConnectivity",
      "Wormhole"),
    tests(
      "WatchConnectivityTests",
      "DropInPeer", "DropIns", "FixturePhone", "FixtureWatch", "Pairings", "PropertyLists",
      "WormholeContainerStorage", "WatchConnectivity", "Wormhole"),
    // An app as they are written for devices, once for each side: the sources are the same.
    .executableTarget(
      name: "FixturePhone", dependencies: ["WatchConnectivity"], path: "Tests/WatchFixture/Phone",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error), .define("PHONE")]),
    .executableTarget(
      name: "FixtureWatch", dependencies: ["WatchConnectivity"], path: "Tests/WatchFixture/Watch",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error), .define("WATCH")]),
    tests("CommunicatorTests", "DropInPeer", "Communicator", "Pairings", "Wormhole"),
    // Code as people have it, by the rules that they have, and without a warning.
    .testTarget(
      name: "SwiftFiveTests",
      dependencies: ["AppGroups", "MMWormhole", "TestSupport", "TestTraits"],
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "SwiftSixTests",
      dependencies: ["AppGroups", "MMWormhole", "TestSupport", "TestTraits", "WormholeTesting"],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    // A program that uses the drop-in modules, for tests to start.
    .executableTarget(
      name: "DropInPeer",
      dependencies: [
        "AppGroups", "CTesting", "Communicator", "MMWormhole", "Syscalls", "TestSupport",
        "WatchConnectivity", "Wormhole",
      ],
      path: "Tests/DropInPeer", swiftSettings: house),
    tests("StressTests", "WormholeContainerStorage", "WormholeStress"),
    tests(
      "CommandTests",
      "CommandLine", "PropertyLists", "WormholeContainerStorage", "TestPeer", "WormholeCommand"),
    tests(
      "CinemaTimeTests",
      "CPseudoTerminal", "CinemaTime", "CinemaTimeCommand", "CommandLine", "PropertyLists",
      "WormholeContainerStorage", "WatchConnectivity", "Wormhole"),
    .target(name: "CPseudoTerminal", path: "Tests/CPseudoTerminal"),
    tests(
      "ReadmeTests",
      "AppGroups", "CinemaTimeCommand", "CommandLine", "Communicator", "ConfigurationProgram",
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
    tests("TidyTests"),
  ],
  swiftLanguageModes: [.v6]
)
