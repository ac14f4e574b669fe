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

let package = Package(
  name: "wormhole",
  products: [
    .library(name: "Wormhole", targets: ["Wormhole"]),
    .library(name: "WormholeTesting", targets: ["WormholeTesting"]),
    .executable(name: "wormhole", targets: ["WormholeCommand"]),
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
      name: "SharedContainer", dependencies: ["PropertyLists", "Syscalls"], swiftSettings: house),
    .target(
      name: "Wormhole", dependencies: ["PropertyLists", "SharedContainer", "Syscalls"],
      swiftSettings: house),
    .target(
      name: "WormholeTesting", dependencies: ["SharedContainer", "Syscalls", "Wormhole"],
      swiftSettings: house),
    .executableTarget(
      name: "WormholeCommand",
      dependencies: ["PropertyLists", "SharedContainer", "Syscalls", "Wormhole"],
      swiftSettings: house),
    .executableTarget(
      name: "WormholeBenchmarks",
      dependencies: [
        "AllocationCounter", "CFloor", "PropertyLists", "SharedContainer", "Syscalls", "Wormhole",
      ], swiftSettings: house),
    .target(name: "AllocationCounter"),
    .target(name: "CFloor"),

    .target(
      name: "TestTraits", dependencies: ["Syscalls"], path: "Tests/TestTraits", swiftSettings: house
    ),
    .target(
      name: "TestSupport", dependencies: ["PropertyLists", "SharedContainer", "Syscalls"],
      path: "Tests/TestSupport",
      swiftSettings: house),
    // A program for tests to start, kill and stop.
    .executableTarget(
      name: "TestPeer",
      dependencies: [
        "CForking", "PropertyLists", "SharedContainer", "Syscalls", "TestSupport", "Wormhole",
      ],
      path: "Tests/TestPeer", swiftSettings: house),
    .target(name: "CForking", path: "Tests/CForking"),
    .testTarget(
      name: "SyscallsTests", dependencies: ["Syscalls", "TestPeer", "TestSupport", "TestTraits"],
      swiftSettings: house),
    .testTarget(
      name: "PropertyListsTests",
      dependencies: ["PropertyLists", "PropertyListFuzzing", "TestSupport", "TestTraits"],
      swiftSettings: house),
    .target(
      name: "PropertyListFuzzing", dependencies: ["PropertyLists"],
      path: "Tests/PropertyListFuzzing", swiftSettings: house),
    .executableTarget(
      name: "PropertyListFuzzer", dependencies: ["PropertyListFuzzing"],
      path: "Tests/PropertyListFuzzer", swiftSettings: house),
    .testTarget(
      name: "SharedContainerTests",
      dependencies: [
        "PropertyLists", "SharedContainer", "Syscalls", "TestPeer", "TestSupport", "TestTraits",
        "Wormhole",
      ],
      swiftSettings: house),
    .testTarget(
      name: "WormholeTests",
      dependencies: [
        "PropertyLists", "SharedContainer", "Syscalls", "TestPeer", "TestSupport", "TestTraits",
        "Wormhole",
      ],
      swiftSettings: house),
    .testTarget(
      name: "WormholeTestingTests",
      dependencies: [
        "Syscalls", "TestSupport", "TestTraits", "Wormhole", "WormholeCommand", "WormholeTesting",
      ],
      swiftSettings: house),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "PropertyLists", "SharedContainer", "Syscalls", "TestPeer", "TestSupport", "TestTraits",
        "WormholeCommand",
      ],
      swiftSettings: house),
    .testTarget(
      name: "ReadmeTests",
      dependencies: [
        "Syscalls", "TestSupport", "TestTraits", "Wormhole", "WormholeCommand", "WormholeTesting",
      ],
      swiftSettings: house),
    .testTarget(
      name: "TidyTests", dependencies: ["Syscalls", "TestSupport", "TestTraits"],
      swiftSettings: house),
  ],
  swiftLanguageModes: [.v6]
)
