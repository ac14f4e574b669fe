/// A package that compiles the code of a phone and watch app once for each side, and tests both
/// sides as two processes.
///
/// The article *Two sides in CI* prints the package around its sample. Around a user's sources the
/// sample is left out: two links lead to the sources, and the programs start the sources' own
/// shared object.
struct TwoSides {
  typealias File = (path: String, text: String)

  /// The user's sources; nil for the sample of the article.
  let sources: SourceScan?
  /// The modules of Apple's that become targets of the package.
  let shims: [Shim]

  init(around sources: SourceScan?) {
    self.sources = sources
    shims = Shim.allCases.filter { sources?.modules.contains($0.targetName) == true }
  }

  /// The links to the sources, by path in the package.
  static let links = ["Sources/PhoneSide/Shared", "Sources/WatchSide/Shared"]

  /// The target of the links.
  ///
  /// - Parameter directory: the path of the package.
  func linkTarget(in directory: String) -> String {
    guard let sources else { return "../../Shared" }
    return relativePath(from: directory + "/Sources/PhoneSide", to: sources.path)
  }

  /// The files of the package in the order of the article.
  ///
  /// - Parameters:
  ///   - dependency: the dependency on the package of this command, in the manifest's words.
  ///   - identity: the name of that package.
  func files(dependency: String, identity: String) -> [File] {
    var files: [File] = [("Package.swift", manifest(dependency, identity))]
    if sources == nil { files += Self.sample }
    files += [
      ("Sources/PhoneSide/PhoneApp.swift", phone), ("Sources/WatchSide/WatchApp.swift", watch),
      ("Tests/TwoSidesTests/TwoSidesTests.swift", tests), ("two-sides.yml", Self.workflow),
    ]
    for shim in shims {
      files += shim.files.map { ("Sources/\(shim.targetName)/\($0.path)", $0.text) }
      for side in ["PhoneSide", "WatchSide"] {
        files += shim.filesForUsers.map { ("Sources/\(side)/\($0.path)", $0.text) }
      }
    }
    return files
  }

  /// The line with which a program starts the app's code.
  private var start: String {
    guard let sources else { return "TicketLink.shared.start()" }
    return sources.delegate.map { "_ = \($0)" }
      ?? "// Start the app's code here, for example: _ = Link.shared"
  }

  private func manifest(_ dependency: String, _ identity: String) -> String {
    let shimNames = shims.map { ", \"\($0.targetName)\"" }.joined()
    let shimTargets = shims.map { shim in
      let texts = shim.files.map(\.text)
      let products = ["AppGroups", "WatchConnectivity"].filter { product in
        texts.contains { SourceScan.modules(importedBy: $0).contains(product) }
      }.map { ".product(name: \"\($0)\", package: \(identity.asLiteral))" }
      let needs = products.isEmpty ? "" : ", dependencies: [\(products.joined(separator: ", "))]"
      return """
            .target(
              name: "\(shim.targetName)"\(needs),
              swiftSettings: [.swiftLanguageMode(.v5)]),

        """
    }.joined()
    return """
      // swift-tools-version: 6.3
      import PackageDescription

      let connectivity = Target.Dependency.product(
        name: "WatchConnectivity", package: \(identity.asLiteral))

      /// A program that compiles the shared sources under the condition of its side.
      func side(_ name: String, _ condition: String) -> Target {
        .executableTarget(
          name: name, dependencies: [connectivity\(shimNames)],
          swiftSettings: [
            .swiftLanguageMode(.v5),
            .define(condition),
            // Files that import Foundation alone use names of Combine, as on devices.
            .unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "WatchConnectivity"]),
          ])
      }

      let package = Package(
        name: "two-sides",
        dependencies: [\(dependency)],
        targets: [
          side("PhoneSide", "PHONE"),
          side("WatchSide", "WATCH"),
      \(shimTargets)    .testTarget(
            name: "TwoSidesTests",
            dependencies: [
              "PhoneSide", "WatchSide", connectivity,
              .product(name: "WormholeTesting", package: \(identity.asLiteral)),
            ]),
        ]
      )

      """
  }

  private var phone: String {
    let sales = """
          for title in CommandLine.arguments.dropFirst() {
            TicketLink.shared.sell(title)
            print("sold \\(title)")
          }

      """
    return """
      import Foundation
      import WatchConnectivity

      /// The phone's app without its screens.
      @main struct PhoneApp {
        static func main() {
          \(start)
          while WCSession.default.activationState != .activated {
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
          }
          print("activated")
      \(sources == nil ? sales : "")    RunLoop.main.run()
        }
      }

      """
  }

  private var watch: String {
    let printing = """
          let printing = TicketStore.shared.$titles.dropFirst().sink { titles in
            print("tickets: \\(titles.joined(separator: ", "))")
          }

      """
    return """
      import Foundation
      import WatchConnectivity

      /// The watch's app without its screens.
      @main struct WatchApp {
        static func main() {
      \(sources == nil ? printing : "")    \(start)
          while WCSession.default.activationState != .activated {
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
          }
          print("activated")
          RunLoop.main.run()
      \(sources == nil ? "    printing.cancel()\n" : "")  }
      }

      """
  }

  private var tests: String {
    let sale = """

        @Test func aSaleReachesTheNextRunOfTheWatch() async throws {
          let container = try TemporaryContainer()
          let pairing = try Pairing(directory: container.path)
          let watch = try start("WatchSide", in: container)
          try await watch.waitForOutput("activated")
          // Out of range the phone sells, and the watch learns nothing.
          try pairing.setInRange(false)
          let phone = try start("PhoneSide", ["Metropolis", "M"], in: container)
          try await phone.waitForOutput("sold M\\n")
          #expect(try !watch.output.contains("tickets"))
          // The watch's app is killed. Its next run receives both transfers, in order.
          try watch.kill()
          try pairing.setInRange(true)
          let next = try start("WatchSide", in: container)
          try await next.waitForOutput("tickets: Metropolis, M\\n")
          try await phone.waitForOutput("delivered M\\n")
        }

      """
    return """
      import Testing
      import WatchConnectivity
      import WormholeTesting

      /// Both sides of the app, as two processes.
      @Suite struct TwoSidesTests {
        private func start(
          _ program: String, _ arguments: [String] = [], in container: TemporaryContainer
        ) throws -> TestProcess {
          let role = program == "PhoneSide" ? "phone" : "watch"
          return try TestProcess(
            program, arguments, in: container, environment: ["WORMHOLE_ROLE": role])
        }

        @Test func bothSessionsAreActivated() async throws {
          let container = try TemporaryContainer()
          let phone = try start("PhoneSide", in: container)
          let watch = try start("WatchSide", in: container)
          try await phone.waitForOutput("activated\\n")
          try await watch.waitForOutput("activated\\n")
        }
      \(sources == nil ? sale : "")}

      """
  }
}
