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

  /// Each message of the sender meets the same error.
  @Test(arguments: [false, true])
  func theLogReportsClosedReceiptsOnceForTheirSender(_ isQueue: Bool) throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { options in
      options.sharing = .group
      options.log = { told.add($0) }
    }
    let jobs = pair.sender.queue("jobs", of: Int.self)
    if isQueue { try jobs.send(contentsOf: [1, 2], .quick()) } else { try pair.send([1, 2]) }
    let receipts = try pair.meeting.folder("members/phone/receipts")
    try receipts.setMode(0o2777)
    let receiving: Subscription
    if isQueue {
      receiving = try jobs.work { _, _ in }
    } else {
      receiving = try pair.watch.receive { _ in }
    }
    func refused(_ entries: [LogEntry]) -> [LogEntry] {
      entries.filter { $0.code == .permissionDenied && $0.message != nil }
    }
    try told.wait("both outcomes are refused") { Set(refused($0).map(\.message)).count == 2 }
    #expect(refused(told.all).count { $0.level == .error } == 1)
    try receipts.setMode(0o2770)
    try eventually("both outcomes are written") {
      try isQueue ? jobs.messages.isEmpty : pair.files("claimed") == []
    }
    receiving.stop()
  }

  /// This user may not enter the directory of the sender, which waits for outcomes.
  @Test func theLogReportsOnceThatASenderIsNotNotified() throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { $0.log = { told.add($0) } }
    try pair.send([1, 2])
    let messages = try pair.watch.take(2)
    let rule = FaultRule(.open, path: "members/phone", persistent: true, .fail(.accessDenied))
    try FaultPoints.with([rule]) { for message in messages { try message.acknowledge() } }
    #expect(try pair.files("claimed") == [])
    #expect(try pair.files("receipts", of: "phone") == [])
    let reports = told.all.filter { $0.text.contains("outcomes of messages from 'phone'") }
    #expect(reports.map(\.level) == [.warning])
    #expect(reports.map(\.errno) == [Errno.accessDenied.rawValue])
    #expect(reports.map(\.member) == ["phone"])
  }

  /// A file has the name of the directory, which was moved away.
  @Test func anOutcomeWaitsWhileTheReceiptsAreNoDirectory() throws {
    let (told, handled) = (Heard<LogEntry>(), Heard<Int>())
    let pair = try Pair { $0.log = { told.add($0) } }
    let sent = try pair.send([1])[0]
    let place = "members/phone/receipts"
    let home = try pair.meeting.folder("members/phone")
    try home.rename("receipts", to: home, "aside")
    try pair.meeting.folder.write("", to: "c/\(place)")
    let receiving = try pair.watch.receive { _ in handled.add(1) }
    try told.wait("the outcome is refused") { entries in
      entries.contains {
        $0.level == .error && $0.message == sent.id
          && $0.text.contains("'\(place)' is not a directory: move the file away")
      }
    }
    let problems = try pair.meeting.container.storage.inspect()
      .filter { $0.severity == .problem && $0.subject.hasSuffix(place) }
    #expect(!problems.isEmpty)
    #expect(try pair.meeting.names("members/watch/claimed").count == 1)
    try home.unlink("receipts")
    try home.rename("aside", to: home, "receipts")
    try eventually("the outcome is written") {
      try pair.meeting.names(place).contains { $0.hasSuffix(".ok") }
    }
    #expect(handled.all == [1])
    receiving.stop()
  }
}
