import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeTesting

/// Users' packages that depend on this package, and test their own code with WormholeTesting.
@Suite(.notSanitized("it builds for release"), .serialized) struct ExamplePackageTests {
  /// The packages see public symbols only, so every user can do the same.
  ///
  /// This package is built again for the tests, half a minute's work of two processors. All
  /// packages share the build. The second package and the third are written by the command, the
  /// third around code without an edit, whose files do not import the module.
  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func testsOfUsersPackagesPass() async throws {
    guard let swift = Programs.installed("swift") else {
      return skip("the packages of users", missing: "swift")
    }
    let home = try TemporaryDirectory(isPlain: true)
    try await test(
      Programs.source + "/Tests/ExamplePackage", by: swift, in: home,
      "Executed 2 tests, with 0 failures", "Test run with 5 tests in 1 suite passed")
    try await write("sample", in: home)
    try await test(
      home.path + "/sample", by: swift, in: home, "Test run with 2 tests in 1 suite passed")
    try home.descriptor.makeDirectory("app", mode: 0o700)
    try home.write(Self.code, to: "app/Link.swift")
    try await write("own", in: home, "--sources", home.path + "/app")
    try await test(
      home.path + "/own", by: swift, in: home, "Test run with 1 test in 1 suite passed")
  }

  /// Code with one import, of Foundation.
  private static let code = """
    import Foundation

    final class Link: NSObject, WCSessionDelegate, ObservableObject {
      static let shared = Link()
      @Published var isActive = false

      override private init() {
        super.init()
        WCSession.default.delegate = self
        WCSession.default.activate()
      }

      func session(
        _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
        error: Error?
      ) {
        DispatchQueue.main.async { self.isActive = state == .activated }
      }

      #if os(iOS) || PHONE
        func sessionDidBecomeInactive(_ session: WCSession) {}
        func sessionDidDeactivate(_ session: WCSession) {}
      #elseif !os(watchOS) && !WATCH
        let side = neitherSideIsCompiled
      #endif
    }

    """

  private func write(
    _ name: String, in home: TemporaryDirectory, _ options: String...
  ) async throws {
    let command = try TestProcess(
      "wormhole",
      ["new", "two-sides", "\(home.path)/\(name)", "--package", Programs.source] + options,
      in: nil)
    let status = try await command.exitStatus()
    let errors = try command.standardError
    #expect(status == .exited(0), "\(errors)")
  }

  private func test(
    _ package: String, by swift: String, in home: TemporaryDirectory, _ results: String...
  ) async throws {
    let tests = try TestProcess(
      swift,
      [
        "test", "--package-path", package, "--scratch-path", home.path + "/build",
        // The build is not debugged by anyone.
        "-debug-info-format", "none",
      ], in: nil, terminal: false)
    let status = try await tests.exitStatus(within: .seconds(1200))
    let words = try tests.output + tests.standardError
    #expect(status == .exited(0), "\(words)")
    for result in results { #expect(words.contains(result), "\(words)") }
  }
}
