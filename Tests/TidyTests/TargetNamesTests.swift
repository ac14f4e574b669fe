import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The names of targets, which are global in the package graph of every user.
///
/// SwiftPM refuses a graph in which two packages have targets of one name. A user cannot name a
/// target like one that a product of this package reaches.
@Suite(.blocking, .notSanitized("it runs the package manager")) struct TargetNamesTests {
  private struct Manifest: Decodable {
    struct Product: Decodable {
      var name: String
      var targets: [String]
    }
    struct Target: Decodable {
      var name: String
      var type: String
      var dependencies: [[String: [Name?]]]
    }
    /// A dependency is a list of a name and a condition.
    struct Name: Decodable {
      var text: String?
      init(from decoder: any Decoder) throws {
        text = try? decoder.singleValueContainer().decode(String.self)
      }
    }
    var products: [Product]
    var targets: [Target]
  }

  /// Runs the package manager, beside the one that may run these tests in the same directory.
  private func swift(_ package: String, _ command: String) throws -> ProcessOutcome? {
    guard let swift = Programs.installed("swift") else { return nil }
    let scratch = try TemporaryDirectory()
    return try run(
      swift, ["package", "--package-path", package, "--scratch-path", scratch.path, command],
      within: .seconds(300))
  }

  private func text(_ article: String) throws -> String {
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/" + article
    return String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
  }

  /// The targets that users import have the names of their products.
  @Test func targetsThatAProductReachesHaveThePackagesPrefix() throws {
    guard let outcome = try swift(Programs.source, "dump-package") else {
      return skip("the names of targets", missing: "swift")
    }
    let manifest = try JSONDecoder().decode(Manifest.self, from: Data(outcome.output.utf8))
    let targets = Dictionary(uniqueKeysWithValues: manifest.targets.map { ($0.name, $0) })
    var reached: Set<String> = []
    var rest = manifest.products.flatMap(\.targets)
    while let name = rest.popLast() {
      guard reached.insert(name).inserted, let target = targets[name] else { continue }
      rest += target.dependencies.flatMap { $0.values.compactMap { $0.first??.text } }
    }
    #expect(reached.isSuperset(of: ["WormholeSyscalls", "WormholeCLinux", "WormholeCTesting"]))
    let products = Set(manifest.products.map(\.name))
    for name in reached.sorted() where !name.hasPrefix("Wormhole") && !products.contains(name) {
      Issue.record("a product reaches the target '\(name)': users cannot have one of that name")
    }
  }

  /// A user's package may have targets with the names that a reader would give to targets of this
  /// package.
  ///
  /// A target called like a product is refused, which shows that the package manager
  /// compares the names; it needs another name, as the article on Communicator states, and may stay
  /// in its directory.
  @Test func aUsersPackageMayHaveTargetsOfCommonNames() throws {
    let common = [
      "AllocationCounter", "CChecksum", "CFloor", "CLinux", "CTesting", "CinemaTime",
      "CinemaTimeCommand", "CommandLine", "DropIns", "Pairings", "PropertyLists",
      "SharedContainer", "Syscalls", "TestSupport",
    ]
    let folder = try TemporaryDirectory()
    for name in common + ["Communicator"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder.path)/Sources/\(name)", withIntermediateDirectories: true)
      try folder.write("let name = \"\(name)\"\n", to: "Sources/\(name)/Name.swift")
    }
    func resolve(_ names: [String], more: String = "") throws -> ProcessOutcome? {
      let targets = names.map { "    .target(name: \"\($0)\"),\n" }.joined() + more
      try folder.write(
        """
        // swift-tools-version: 6.3
        import PackageDescription

        let package = Package(
          name: "user",
          dependencies: [.package(name: "wormhole", path: "\(Programs.source)")],
          targets: [
        \(targets)
            .target(
              name: "App", dependencies: [.product(name: "Wormhole", package: "wormhole")],
              path: "App"),
          ])

        """, to: "Package.swift")
      return try swift(folder.path, "show-dependencies")
    }
    try FileManager.default.createDirectory(
      atPath: folder.path + "/App", withIntermediateDirectories: true)
    try folder.write("import Wormhole\n", to: "App/App.swift")
    let renamed = ".target(name: \"AppCommunicator\", path: \"Sources/Communicator\"),"
    #expect(try text("Communicator.md").contains(renamed))
    guard let outcome = try resolve(common, more: renamed + "\n") else {
      return skip("targets of common names", missing: "swift")
    }
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let conflict = try #require(try resolve(["Communicator"]))
    #expect(conflict.status != .exited(0))
    #expect(conflict.errors.contains("conflicting name: 'Communicator"), "\(conflict.errors)")
  }
}
