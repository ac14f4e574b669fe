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
    .target(name: "PropertyLists", swiftSettings: house),
    .target(name: "Wormhole", dependencies: ["PropertyLists", "Syscalls"], swiftSettings: house),
    .executableTarget(
      name: "WormholeCommand", dependencies: ["Wormhole"], swiftSettings: house),
    .executableTarget(
      name: "WormholeBenchmarks", dependencies: ["AllocationCounter", "PropertyLists", "Wormhole"],
      swiftSettings: house),
    .target(name: "AllocationCounter"),

    .target(
      name: "TestSupport", dependencies: ["Syscalls"], path: "Tests/TestSupport",
      swiftSettings: house),
    .testTarget(
      name: "SyscallsTests", dependencies: ["Syscalls", "TestSupport"], swiftSettings: house),
    .testTarget(
      name: "PropertyListsTests",
      dependencies: ["PropertyLists", "PropertyListFuzzing", "TestSupport"],
      swiftSettings: house),
    .target(
      name: "PropertyListFuzzing", dependencies: ["PropertyLists"],
      path: "Tests/PropertyListFuzzing", swiftSettings: house),
    .executableTarget(
      name: "PropertyListFuzzer", dependencies: ["PropertyListFuzzing"],
      path: "Tests/PropertyListFuzzer", swiftSettings: house),
    .testTarget(name: "TidyTests", dependencies: ["TestSupport"], swiftSettings: house),
  ],
  swiftLanguageModes: [.v6]
)
