import TestSupport
import Testing

@testable import WormholeTesting

/// A package of a user's that depends on this one, and tests its own code with WormholeTesting.
@Suite struct ExamplePackageTests {
  /// It sees what is public, and nothing else; so what it does every user can do.
  ///
  /// The whole package is built anew for it, which is half a minute's work of two processors.
  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func testsOfAUsersPackagePass() async throws {
    guard let swift = Programs.installed("swift") else {
      return skip("the example package", because: "swift is not in PATH")
    }
    let scratch = try TemporaryDirectory()
    let package = Programs.source + "/Tests/ExamplePackage"
    let tests = try TestProcess(
      swift,
      [
        "test", "--package-path", package, "--scratch-path", scratch.path + "/build",
        // Nobody looks at it in a debugger.
        "-debug-info-format", "none",
      ], in: nil)
    let ending = try await tests.ending(within: .seconds(1200))
    let words = try tests.output + tests.errors
    #expect(ending == .exited(0), "\(words)")
    #expect(words.contains("Executed 2 tests, with 0 failures"), "\(words)")
    #expect(words.contains("Test run with 6 tests in 2 suites passed"), "\(words)")
  }
}
