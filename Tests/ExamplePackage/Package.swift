// swift-tools-version: 6.3

import PackageDescription

// A package of a user's. It lies here so that a test can build it and run its tests.
let package = Package(
  name: "tickets",
  products: [.library(name: "Tickets", targets: ["Tickets"])],
  dependencies: [.package(name: "wormhole", path: "../..")],
  targets: [
    .target(name: "Tickets", dependencies: [.product(name: "Wormhole", package: "wormhole")]),
    .executableTarget(name: "TicketWindow", dependencies: ["Tickets"]),
    .testTarget(
      name: "TicketsTests",
      dependencies: [
        "Tickets", "TicketWindow", .product(name: "WormholeTesting", package: "wormhole"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
