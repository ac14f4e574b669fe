import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A sender whose receipts cannot be moved to its directory.
@Suite(.blocking) struct ClosedSenderTests {
  /// The receiver repeats the call until a person changes the directory, so the error names it.
  @Test func theErrorOfAnOutcomeNamesTheClosedReceipts() throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { options in
      options.sharing = .group
      options.log = { told.add($0) }
    }
    let sent = try pair.send([1])[0]
    let receipts = try pair.meeting.folder("members/phone/receipts")
    try receipts.setMode(0o2777)
    let receiving = try pair.watch.receive { _ in }
    try told.wait("the outcome is refused") { entries in
      entries.contains {
        $0.level == .error && $0.message == sent.id
          && $0.text.contains("to 'members/phone/receipts' (mode 2777)")
      }
    }
    try receipts.setMode(0o2770)
    #expect(try sent.waitForEnd() == .delivered)
    receiving.stop()
  }
}
