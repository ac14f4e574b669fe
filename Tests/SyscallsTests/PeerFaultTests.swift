import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Rules from the environment, in a process of their own.
@Suite(.blocking) struct PeerFaultTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func start(_ rules: String, trace: String? = nil) throws -> Running {
    var environment = ["WORMHOLE_FAULTS=\(rules)"]
    if let trace { environment.append("WORMHOLE_FAULT_TRACE=\(trace)") }
    try folder.write("old", to: "value")
    return try Running(.replace(folder.path, "value", "new"), environment: environment)
  }

  @Test func withoutRulesNothingHappens() throws {
    let outcome = try run(.replace(folder.path, "value", "new"))
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "done\n")
    #expect(try folder.read("value") == "new")
  }

  @Test func killBeforeTheRenameLeavesTheOldValue() throws {
    let outcome = try start("rename:before:kill").outcome()
    #expect(outcome.status == .signalled(9))
    #expect(try folder.read("value") == "old")
    #expect(try folder.read("value.new") == "new")
  }

  @Test func killAfterTheRenameLeavesTheNewValue() throws {
    let outcome = try start("rename:after:kill").outcome()
    #expect(outcome.status == .signalled(9))
    #expect(outcome.output == "")
    #expect(try folder.read("value") == "new")
  }

  @Test func stopHoldsItUntilItMayGoOn() throws {
    let running = try start("rename:before:stop")
    try running.waitUntilStopped()
    #expect(try folder.read("value") == "old")
    try running.child.send(.go)
    #expect(try running.outcome().output == "done\n")
    #expect(try folder.read("value") == "new")
  }

  /// The stop reaches the thread that makes the call, not whichever the kernel picks.
  @Test func stopHoldsAThreadThatIsNotTheFirst() throws {
    let running = try Running(
      .bystander(folder.path, "made"), environment: ["WORMHOLE_FAULTS=mkdir:before:stop"])
    try running.waitUntilStopped()
    #expect(try folder.descriptor.names() == [])
    try running.child.send(.go)
    #expect(try running.outcome().output == "done\n")
    #expect(try folder.descriptor.names() == ["made"])
  }

  @Test func delayTakesItsTime() throws {
    let before = Instant.now
    let outcome = try start("fsync:before:delay=60").outcome()
    #expect(Instant.now - before >= .milliseconds(60))
    #expect(outcome.output == "done\n")
  }

  @Test func failIsReported() throws {
    let outcome = try start("fsync:before:fail=EIO").outcome()
    #expect(outcome.status == .exited(70))
    #expect(outcome.errors == "TestPeer: input/output error\n")
    #expect(try folder.read("value") == "old")
  }

  @Test func severalRulesGoTogether() throws {
    let outcome = try start("write:before:short;rename@1:before:fail=ENOSPC").outcome()
    #expect(outcome.status == .exited(70))
    #expect(try folder.read("value.new") == "new")
    #expect(try folder.read("value") == "old")
  }

  @Test func aRuleThatIsNoneEndsTheProcess() throws {
    let outcome = try start("nonsense").outcome()
    #expect(outcome.status != .exited(0))
    #expect(outcome.errors.contains("WORMHOLE_FAULTS: 'nonsense' is not a rule"))
  }

  @Test func theTraceIsWrittenToAFile() throws {
    let trace = try TemporaryDirectory()
    let outcome = try start("", trace: trace.path + "/trace").outcome()
    #expect(outcome.status == .exited(0))
    let lines = try trace.read("trace").split(separator: "\n").map(String.init)
    let calls = lines.map { $0.split(separator: " ")[1] }
    #expect(calls == ["open", "open", "write", "fsync", "rename", "write", "close", "close"])
    #expect(lines[4] == "5 rename \(folder.path)/value")
  }

  /// Kills the peer before and after each of its calls: the value is the old or the new value,
  /// never a part of a value.
  @Test func noDeathLeavesHalfAValue() throws {
    for moment in ["before", "after"] {
      for number in 1...8 {
        let outcome = try start("any@\(number):\(moment):kill").outcome()
        #expect(outcome.status == .signalled(9), "\(moment) call \(number)")
        let value = try folder.read("value")
        #expect(value == "old" || value == "new")
        try? folder.descriptor.unlink("value.new")
      }
    }
  }
}
