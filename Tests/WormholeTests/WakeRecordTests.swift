import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Verdicts from the record of the latest start, for processes that want a member to run.
@Suite(.blocking) struct WakeRecordTests {
  /// A zombie that no parent reaps, as under an init that does not reap, is no reason to wait.
  @Test func aZombieIsNotBeingStarted() throws {
    let child = try Child.spawn("true")
    try child.waitUntilEnded()
    var record = WakeRecord(id: "1", started: 0, by: "test", program: "true", before: nil)
    record.process = child.process
    record.namespace = ProcessIdentity.current.namespace
    record.ticks = ProcessStatus(of: child.process)?.started
    #expect(
      record.verdict(nil, "true", begun: 0, now: 6_000_000_000, grace: .seconds(5)) == .start)
    _ = try child.wait()
  }

  /// The thread that waits for the end of the program is started before the program.
  @Test func aProgramThatCannotBeStartedLeavesNoThread() throws {
    let meeting = try Meeting()
    let storage = meeting.container.storage
    let start = MemberStart(
      program: "\(meeting.path)/missing", arguments: [], environment: [:], directory: nil)
    weak var left: StartAttempt?
    do {
      let attempt = StartAttempt(
        "watch", storage,
        WakeRecord(id: "1", started: 0, by: "test", program: start.program, before: nil))
      left = attempt
      #expect(throws: Errno.noSuchFile) { _ = try attempt.spawn(start, in: storage) }
    }
    // Only the thread could still retain the attempt.
    try eventually("the thread has ended") { left == nil }
  }

  @Test func eachFailureInARowIsWaitedForLonger() throws {
    var pauses: [Duration] = []
    for failed in 0..<20 {
      var record = WakeRecord(
        id: "1", started: 0, by: "test", program: "a", before: "b", failed: failed)
      record.failure = "it ended"
      record.ended = 1
      func verdict(_ incarnation: String?, _ program: String, now: Int64)
        -> WakeRecord.StartDecision
      {
        record.verdict(incarnation, program, begun: 2, now: now, grace: .seconds(5))
      }
      guard case .wait(let pause) = verdict("b", "a", now: 1) else {
        Issue.record("\(failed): it is started at once")
        continue
      }
      pauses.append(pause)
      let end = 1 + pause.inNanoseconds
      #expect(verdict("b", "a", now: end - 1) == .wait(.nanoseconds(1)))
      #expect(verdict("b", "a", now: end) == .start)
      // Another program, a start that succeeded, and an earlier start of the machine.
      #expect(verdict("b", "other", now: 1) == .start)
      #expect(verdict("c", "a", now: 1) == .start)
      #expect(verdict("b", "a", now: 0) == .start)
    }
    #expect(pauses.first == .milliseconds(100))
    #expect(pauses == pauses.sorted())
    #expect(pauses.last == .seconds(10))
  }

  @Test func theStateOfAStartIsStatedForPeople() {
    func record(failed: Int = 0, machine: String? = nil) -> WakeRecord {
      WakeRecord(
        id: "1", started: 0, by: "till", program: "app", machine: machine, before: nil,
        failed: failed)
    }
    var here = record()
    #expect(here.whatRuns == "'till' was about to start the program")
    here.process = 7
    #expect(here.whatRuns == "'app' (process 7) was started")
    here.failure = "it ended"
    #expect(here.whatRuns == "the program was started once without success: it ended")
    here = record(failed: 2)
    here.failure = "it ended"
    #expect(
      here.whatRuns
        == "the program was started 3 times in a row without success; the last time, it ended")
    var there = record(machine: "m2")
    #expect(there.whatRuns == "'till' was about to have machine 'm2' start the program")
    there.process = 7
    #expect(there.whatRuns == "machine 'm2' was asked to start the program")
  }

  /// The clock counts from the start of the machine.
  @Test func aWakeRecordOfAnEarlierBootIsIgnored() {
    let record = WakeRecord(
      id: "1", started: 9_000_000_000, by: "test", program: "a", before: "b")
    func verdict(now: Int64) -> WakeRecord.StartDecision {
      record.verdict("b", "a", begun: 0, now: now, grace: .seconds(5))
    }
    #expect(verdict(now: 8_999_999_999) == .start)
    #expect(verdict(now: 9_000_000_000) == .wait(.seconds(5)))
    #expect(verdict(now: 13_999_999_999) == .wait(.nanoseconds(1)))
    #expect(verdict(now: 14_000_000_000) == .start)
  }

  /// A process may learn late that its program has ended, after another process's start.
  @Test func anExitIsRecordedInItsOwnRecord() throws {
    let meeting = try Meeting()
    let slot = try WakeRecord.slot(of: "watch", in: meeting.container.storage)
    let record = WakeRecord(id: "new", started: 1, by: "test", program: "a", before: nil)
    try slot.change("wake") { _ in .put(try record.encoded()) }
    let time = Patience(until: .now + patience)
    try WakeRecord.change(slot, "old", time) { $0.failure = "it ended" }
    #expect(try WakeRecord(slot.read()) == record)
    try WakeRecord.change(slot, "new", time) { $0.failure = "it ended" }
    #expect(try WakeRecord(slot.read())?.failure == "it ended")
  }
}
