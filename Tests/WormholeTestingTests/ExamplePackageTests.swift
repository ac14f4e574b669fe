import TestSupport
import TestTraits
import Testing

@testable import WormholeTesting

/// A user's package that depends on this package, and tests its own code with WormholeTesting.
@Suite(.notSanitized("it builds for release")) struct ExamplePackageTests {
  /// The package sees public symbols only, so every user can do the same.
  ///
  /// The whole package is built again for the test, half a minute's work of two processors.
  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func testsOfAUsersPackagePass() async throws {
    guard let swift = Programs.installed("swift") else {
      return skip("the example package", missing: "swift")
    }
    let scratch = try TemporaryDirectory()
    let package = Programs.source + "/Tests/ExamplePackage"
    let tests = try TestProcess(
      swift,
      [
        "test", "--package-path", package, "--scratch-path", scratch.path + "/build",
        // The build is not debugged by anyone.
        "-debug-info-format", "none",
      ], in: nil)
    let ending = try await tests.exitStatus(within: .seconds(1200))
    let words = try tests.output + tests.standardError
    #expect(ending == .exited(0), "\(words)")
    #expect(words.contains("Executed 2 tests, with 0 failures"), "\(words)")
    #expect(words.contains("Test run with 6 tests in 2 suites passed"), "\(words)")
  }
}
