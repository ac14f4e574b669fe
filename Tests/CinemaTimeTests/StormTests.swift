import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// The demonstration, as people see the program.
@Suite(.blocking, .notSanitized("the apps run in processes of their own")) struct StormTests {
  @Test func theBooksAddUpAfterTheStorm() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(
      Programs.built("cinematime"), ["demo"],
      environment: ["TMPDIR=\(folder.path)", "HOME=\(folder.path)"], within: .seconds(120))
    #expect(outcome.status == .exited(0), "\(outcome.errors)\(outcome.output)")
    #expect(outcome.output.hasSuffix("The books add up.\n"))
    #expect(outcome.output.contains("120 purchases were started."))
    #expect(try folder.descriptor.names().isEmpty)
  }

  /// At any moment, as sellers are started all the time.
  @Test(arguments: 0..<6) func whoInterruptsItLeavesNothing(_ turn: Int) throws {
    let folder = try TemporaryDirectory()
    var random = SeededRandom(seed: TestRun.seed &+ UInt64(turn))
    let running = try Running(
      Programs.built("cinematime"), ["demo"],
      environment: ["TMPDIR=\(folder.path)", "HOME=\(folder.path)"])
    try eventually("the storm begins") { try running.output.contains("sell tickets") }
    let moment = Duration.microseconds(Int.random(in: 0..<300_000, using: &random))
    let _: Void? = Monitor(()).wait(until: .now + moment) { _ in nil }
    try running.child.send(.terminate)
    #expect(try running.outcome().status == .signalled(15), "after \(moment)")
    #expect(try folder.descriptor.names().isEmpty, "after \(moment)")
  }
}
