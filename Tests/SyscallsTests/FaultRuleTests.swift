import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The text form of fault rules, and the calls at which rules are due.
@Suite(.blocking) struct FaultRuleTests {
  @Test(arguments: [
    FaultRule(.rename, number: 3, .kill),
    FaultRule(.fsync, persistent: true, .fail(.inputOutput)),
    FaultRule(nil, number: 17, moment: .after, .stop),
    FaultRule(.open, path: "value.plist", .delay(milliseconds: 50)),
    FaultRule(.write, number: 2, .short),
    FaultRule(.open, path: "a@b~c+d", number: 9, persistent: true, .kill),
  ])
  func whatIsPrintedIsReadBack(_ rule: FaultRule) {
    #expect(FaultRule(rule.description) == rule)
  }

  @Test func everyCallCanBeNamed() {
    for call in Call.allCases {
      let rule = FaultRule(call, .kill)
      #expect(FaultRule("\(call.rawValue):before:kill") == rule)
    }
  }

  @Test func whatIsLeftOutHasADefault() {
    #expect(FaultRule("fsync:before:fail=EIO") == FaultRule(.fsync, .fail(.inputOutput)))
    #expect(
      FaultRule("any@1+:after:delay=0")
        == FaultRule(nil, persistent: true, moment: .after, .delay(milliseconds: 0)))
  }

  @Test(arguments: [
    "", "rename", "rename:before", "rename:before:explode", "rename:during:kill",
    "renamed:before:kill", "rename@0:before:kill", "rename@x:before:kill",
    "rename:before:fail", "rename:before:fail=ENOTHING", "rename:before:delay=-1",
    "rename:after:fail=EIO", "write:after:short", "rename:before:kill:twice",
  ])
  func nonsenseIsRefused(_ text: String) {
    #expect(FaultRule(text) == nil)
  }

  @Test func aRuleIsDueOnceOrFromThenOn() throws {
    let folder = try TemporaryDirectory()
    #expect(failures(of: FaultRule(.fstat, number: 2, .fail(.inputOutput)), folder) == [2])
    let persistent = FaultRule(.fstat, number: 2, persistent: true, .fail(.inputOutput))
    #expect(failures(of: persistent, folder) == [2, 3, 4])
  }

  @Test func aRuleMayConcernOnePath() throws {
    let folder = try TemporaryDirectory()
    FaultPoints.with([FaultRule(.mkdir, path: "near", .fail(.noSpace))]) {
      #expect(throws: Never.self) { try folder.descriptor.makeDirectory("far", mode: 0o700) }
      #expect(throws: Errno.noSpace) { try folder.descriptor.makeDirectory("near", mode: 0o700) }
    }
  }

  @Test func aRuleConcernsOneThread() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path
    try FaultPoints.with([FaultRule(.mkdir, persistent: true, .fail(.noSpace))]) {
      let thread = try Thread("another") {
        try? Descriptor.makeDirectory(path: path + "/made", mode: 0o700)
      }
      thread.join()
    }
    #expect(try folder.descriptor.names() == ["made"])
  }

  @Test func theTraceNamesCallsAndPaths() throws {
    let folder = try TemporaryDirectory()
    let calls = try FaultPoints.with {
      try folder.descriptor.makeDirectory("made", mode: 0o700)
      try folder.descriptor.removeDirectory("made")
    }
    #expect(calls == ["mkdir \(folder.path)/made", "rmdir \(folder.path)/made"])
  }

  /// The numbers of the calls, of four, that fail under the rule.
  private func failures(of rule: FaultRule, _ folder: TemporaryDirectory) -> [Int] {
    var failed: [Int] = []
    FaultPoints.with([rule]) {
      for number in 1...4 {
        do { _ = try folder.descriptor.status() } catch { failed.append(number) }
      }
    }
    return failed
  }
}
