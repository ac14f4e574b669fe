import Syscalls
import TestSupport
import Testing

/// A package of a user's that depends on this one, and tests its own code with WormholeTesting.
@Suite struct ExamplePackageTests {
  /// It sees what is public, and nothing else; so what it does every user can do.
  ///
  /// It builds this package a second time, which takes a minute and more: `.ci/run` asks for it.
  @Test func testsOfAUsersPackagePass() throws {
    guard Processes.environment("WORMHOLE_EXAMPLE") == "1" else {
      return skip("the example package", because: "it is built where WORMHOLE_EXAMPLE is 1")
    }
    let scratch = try TemporaryDirectory()
    let outcome = try run(
      "swift",
      [
        "test", "--package-path", Programs.source + "/Tests/ExamplePackage", "--scratch-path",
        scratch.path + "/build",
      ], within: .seconds(1200))
    let words = outcome.output + outcome.errors
    #expect(outcome.status == .exited(0), "\(words)")
    #expect(words.contains("Executed 2 tests, with 0 failures"), "\(words)")
    #expect(words.contains("Test run with 5 tests"), "\(words)")
  }
}
