import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// The end of a program that was started to wake a member.
@Suite(.blocking) struct StartEndTests {
  /// Whether the program has joined before its end is not known.
  @Test func aMemberThatCannotBeReadIsNoFailedStart() throws {
    let meeting = try Meeting()
    let storage = meeting.container.storage
    _ = try storage.member("watch")
    let record = WakeRecord(
      id: "0123456789abcdef", started: 1, by: "test", program: "/bin/true", before: nil)
    let slot = try WakeRecord.slot(of: "watch", in: storage)
    let bytes = try record.encoded()
    try slot.change("wake", patience: Patience(until: .now + patience)) { _ in .put(bytes) }
    let attempt = StartAttempt("watch", storage, record)
    let rule = FaultRule(.open, path: "members/watch", .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { attempt.end(.exited(3)) }
    #expect(try WakeRecord(slot.read())?.failure == nil)
    attempt.end(.exited(3))
    #expect(
      try WakeRecord(slot.read())?.failure
        == "the program ended with exit code 3 before joining as 'watch'")
  }
}
