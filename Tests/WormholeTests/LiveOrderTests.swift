import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Immediate messages from one thread arrive in the order of its calls, also if notices were lost.
@Suite(.blocking) struct LiveOrderTests {
  /// Names of messages with these moments of sending.
  private func names(_ moments: Int64...) -> [LiveName] {
    moments.map { moment in
      LiveName(
        MessageStamp(epoch: 1, nanoseconds: moment), .message, id: "0123456789abcdef",
        deadline: .max)
    }
  }

  @Test func aNameWithoutACommaBeforeItsDeadlineIsForeign() throws {
    let name = try #require(names(1).first)
    #expect(LiveName(name.text) == name)
    var bytes = Array(name.text.utf8)
    bytes[39] = UInt8(ascii: "-")
    #expect(LiveName(String(decoding: bytes, as: UTF8.self)) == nil)
  }

  private func taken(_ arrivals: inout LiveArrivals) -> [Int64] {
    arrivals.takeOthers().map(\.sent)
  }

  /// The first listing finds both files, and no further notice reports them.
  @Test func aMessageThatArrivesWithAReplyIsTaken() throws {
    let (pair, folder) = (try Pair(), try TemporaryDirectory())
    let live = pair.watch.live
    for letter in [LiveName.Letter.yes, .message] {
      let name = LiveName(
        MessageStamp(epoch: 1, nanoseconds: 1), letter, id: "0123456789abcdef",
        deadline: letter.isMessage ? 1 : nil)
      try folder.write("", to: name.text)
    }
    let fresh = LiveMailbox(
      live.container, live.home, OpenDirectory(try folder.descriptor.duplicate()),
      live.incarnation, mark: live.mark)
    try fresh.begin()
    #expect(throws: Never.self) {
      try eventually("both are taken") { try folder.descriptor.names().isEmpty }
    }
    fresh.close()
  }

  @Test func whatIsNoticedBeforeTheFirstListingWaitsForIt() {
    var arrivals = LiveArrivals()
    arrivals.notice(names(5))
    #expect(!arrivals.hasOthers)
    arrivals.find(names(5, 3, 4), from: 4, to: 6, losses: 1)
    // The message sent since then arrives once, by its notice.
    #expect(taken(&arrivals) == [3, 4, 5])
    arrivals.notice(names(7))
    #expect(taken(&arrivals) == [7])
  }

  @Test func whatWasSentSinceAListingBeganIsLeftToItsNotice() {
    var arrivals = LiveArrivals()
    arrivals.find(names(2, 12), from: 10, to: 20, losses: 1)
    #expect(taken(&arrivals) == [2])
    arrivals.notice(names(11, 12))
    #expect(taken(&arrivals) == [11, 12])
  }

  /// A message must not remain for ever because its sender's clock differs from this process's
  /// clock.
  @Test func whatWasSentInTheFutureIsTakenAsItIsFound() {
    var arrivals = LiveArrivals()
    arrivals.find(names(30, 2, 21), from: 10, to: 20, losses: 1)
    #expect(taken(&arrivals) == [2, 21, 30])
  }

  @Test func aListingMakesGoodOnlyWhatWasLostBeforeIt() {
    var arrivals = LiveArrivals()
    arrivals.find([], from: 1, to: 1, losses: 1)
    arrivals.lose()
    arrivals.notice(names(5))
    arrivals.lose()
    arrivals.find(names(3), from: 4, to: 5, losses: 2)
    #expect(taken(&arrivals) == [3])
    arrivals.notice(names(9))
    #expect(!arrivals.hasOthers)
    arrivals.find(names(9, 7), from: 10, to: 11, losses: 3)
    #expect(taken(&arrivals) == [7, 9, 5, 9])
  }

  /// No requester waits for the order in which other messages arrive.
  @Test func answersAreNotHeldBack() {
    var arrivals = LiveArrivals()
    let answers = [LiveName.Letter.answer, .yes, .no].map { letter in
      LiveName(MessageStamp(epoch: 1, nanoseconds: 5), letter, id: "0123456789abcdef")
    }
    arrivals.notice(answers)
    #expect(arrivals.takeAnswers() == answers)
    arrivals.find(answers, from: 4, to: 6, losses: 1)
    #expect(arrivals.takeAnswers() == answers)
    #expect(!arrivals.hasOthers)
  }

  /// The kernel drops notices while the peer is suspended; the peer's listing takes a long time.
  @Test func whatIsNoticedAfterALossWaitsForWhatWasLost() throws {
    let pair = try Listening(faults: "getdents~/live/@3+:before:delay=300")
    try pair.send(1)
    try eventually("it hears") { try pair.heard() == [0] }
    try pair.hearer.child.send(.stop)
    try pair.hearer.waitUntilStopped()
    try pair.send(50)
    let lives = try Descriptor.open(
      path: "\(pair.meeting.path)/members/watch/live", [.readOnly, .directory])
    let live = try lives.open(try #require(try lives.names().first), [.readOnly, .directory])
    _ = try live.open("a", [.writeOnly, .create], mode: 0o600)
    for _ in 0...(try inotifyLimit("max_queued_events") / 2) {
      try live.rename("a", to: live, "b")
      try live.rename("b", to: live, "a")
    }
    try pair.send(100)
    try pair.hearer.child.send(.go)
    try pair.send(150)
    try pair.end()
  }

  /// A watcher that polls is notified by inotify some day, of later arrivals only.
  @Test func whatInotifyTellsAtFirstWaitsForWhatCameBefore() throws {
    let pair = try Listening(
      faults: "inotifyAdd~/live/@1:before:fail=ENOSPC;inotifyAdd~/live/@2:before:delay=50")
    // The watcher tries inotify again after five seconds.
    let end = Instant.now + .seconds(7)
    while Instant.now < end {
      try pair.send(1)
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(2)) { _ in nil }
    }
    try pair.end()
  }
}

/// A process that prints the received messages, and a sender of numbers in their order.
private struct Listening {
  let meeting: Meeting
  let hearer: Running
  private let sender: Member
  private let sent = Monitor(0)

  init(faults: String) throws {
    meeting = try Meeting()
    hearer = try Running(
      .hear(meeting.path, "watch"), environment: ["WORMHOLE_FAULTS=\(faults)"])
    sender = try meeting.another().join(as: "phone")
    try eventually("it listens") { [hearer] in
      try hearer.output.contains("\n") || hearer.hasEnded
    }
  }

  func send(_ count: Int) throws {
    for _ in 0..<count {
      try sender.peer("watch").sendImmediately(sent.withLock { $0 }, within: .seconds(600))
      sent.withLock { $0 += 1 }
    }
  }

  func heard() throws -> [Int] {
    try hearer.output.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      return words.first == "heard" ? Int(words[1]) : nil
    }
  }

  /// Waits until all messages are received, and expects the order of the calls.
  func end() throws {
    let count = sent.withLock { $0 }
    try eventually("it hears all") { try heard().count >= count }
    #expect(try heard() == Array(0..<count))
    sender.leave()
    try hearer.child.send(.kill)
    _ = try hearer.outcome()
  }
}
