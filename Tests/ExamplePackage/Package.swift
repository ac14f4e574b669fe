// swift-tools-version: 6.3

import PackageDescription

// A user's package, kept here for a test that builds the package and runs its tests.
let package = Package(
  name: "tickets",
  products: [.library(name: "Tickets", targets: ["Tickets"])],
  dependencies: [.package(name: "wormhole", path: "../..")],
  targets: [
    .target(name: "Tickets", dependencies: [.product(name: "Wormhole", package: "wormhole")]),
    .executableTarget(name: "TicketWindow", dependencies: ["Tickets"]),
    // A service and its workers.
    .target(name: "Printing", dependencies: [.product(name: "Wormhole", package: "wormhole")]),
    .executableTarget(name: "PrintService", dependencies: ["Printing"]),
    .executableTarget(name: "PrintWorker", dependencies: ["Printing"]),
    // The names of several modules, and of Foundation, in one file.
    .target(
      name: "Names",
      dependencies: [
        .product(name: "Wormhole", package: "wormhole"),
        .product(name: "Communicator", package: "wormhole"),
      ]),
    .testTarget(
      name: "TicketsTests",
      dependencies: [
        "Tickets", "TicketWindow", "Printing", "PrintService", "PrintWorker",
        .product(name: "WormholeTesting", package: "wormhole"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
