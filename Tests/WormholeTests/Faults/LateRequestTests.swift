import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Requests and immediate messages that end at an unusual step, or whose peer is half gone.
@Suite(.blocking) struct LateRequestTests {
  /// The file would stay until the receiver leaves, and count for the limit of the directory.
  @Test func aMessageBehindItsDeadlineIsRemovedUnread() throws {
    let entries = Heard<LogEntry>()
    let pair = try Pair { options in
      options.youth = .zero
      options.log = { entries.add($0) }
    }
    let heard = Heard<Int>()
    let hearing = pair.watch.receiveImmediate(kinds: ["Int"]) { heard.add((try? $0.value()) ?? 0) }
    try pair.phone.sendImmediately(1, within: .nanoseconds(1))
    try entries.wait("the entry") { $0.contains { $0.text.hasPrefix("dropped") } }
    let dropped = entries.all.filter { $0.text.hasPrefix("dropped") }
    #expect(dropped.map(\.text) == ["dropped a message to 'watch': its deadline has passed"])
    #expect(dropped.map(\.level) == [.info] && dropped.map(\.member) == ["watch"])
    #expect(try pair.meeting.names("members/watch/live/\(pair.watch.incarnation)") == [])
    try pair.phone.sendImmediately(2, within: .seconds(600))
    try heard.wait("the message in time") { $0 == [2] }
    hearing.stop()
  }

  /// A clock that the test moves, and whose alarms do not ring.
  private final class MovedClock: MailClock {
    private let start = Instant.now
    private let startSinceBoot = Clocks.sinceBoot
    private let moved = Monitor(Duration.zero)

    var present: Instant { start + moved.withLock { $0 } }
    var sinceBoot: Int64 { startSinceBoot + moved.withLock { $0 }.inNanoseconds }

    func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void) {}

    func advance(by duration: Duration) { moved.withLock { $0 += duration } }
  }

  /// The request was read in time, and waited for a handler until its requester had given up.
  @Test func aRequestBehindItsDeadlineReachesNoLaterHandler() throws {
    let (clock, entries) = (MovedClock(), Heard<LogEntry>())
    let pair = try Pair { options in
      options.youth = .seconds(3600)
      options.clock = clock
      options.log = { entries.add($0) }
    }
    pair.phone.request(1, as: Int.self, kind: "late", within: .seconds(1)) { _ in }
    try TestSupport.eventually("it waits for a handler") { pair.watch.unclaimed == 1 }
    clock.advance(by: .seconds(2))
    let handled = Heard<String>()
    let late = pair.watch.respond(toKind: "late") { handled.add($0.kind) }
    let settling = pair.watch.respond(toKind: "settle") { try? $0.reply(1) }
    // Requests without a queue are handled one after the other.
    #expect(try pair.phone.request(0, as: Int.self, kind: "settle", within: .seconds(60)) == 1)
    #expect(handled.all == [])
    #expect(
      entries.all.map(\.text).filter { $0.hasPrefix("dropped") }
        == ["dropped a message of kind 'late' of 'phone': its deadline has passed"])
    for one in [late, settling] { one.stop() }
  }

  /// The task drops the messages that have become late while its closure was busy.
  @Test func lateMessagesForATaskMakeRoom() throws {
    let clock = MovedClock()
    let pair = try Pair { options in
      options.youth = .zero
      options.maximumValueBytes = 100_000
      options.clock = clock
    }
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let heard = Heard<Int>()
    let hearing = pair.watch.receiveImmediate(kinds: ["page"]) {
      (message: ImmediateMessage) async in
      for await _ in gate {}
      heard.add((try? message.value(as: String.self).utf8.count) ?? 0)
    }
    let settling = pair.watch.respond(toKind: "settle") { try? $0.reply(1) }
    func send(_ size: Int, within time: Duration) throws {
      try pair.phone.sendImmediately(
        String(repeating: "x", count: size), kind: "page", within: time)
      // The reply follows the message: the message waits for the task, and the directory is empty.
      let reply = try pair.phone.request(
        0, as: Int.self, kind: "settle", within: .seconds(600))
      #expect(reply == 1)
    }
    try send(10, within: .seconds(600))
    for _ in 1...6 { try send(10_000, within: .seconds(1)) }
    clock.advance(by: .seconds(2))
    opener.finish()
    // This message is behind the late ones.
    try send(20, within: .seconds(600))
    try heard.wait("the messages in time") { $0 == [10, 20] }
    try send(60_000, within: .seconds(600))
    #expect(throws: Never.self) {
      try heard.wait("the large message") { $0 == [10, 20, 60_000] }
    }
    hearing.stop()
    settling.stop()
  }

  /// The time that a start takes, and the check whether one is needed, counts towards the timeout.
  @Test func aMessageWhosePeerWasWokenTooLateIsNotDelivered() throws {
    let clock = MovedClock()
    let pair = try Pair { $0.clock = clock }
    let (heard, failures) = (Heard<Int>(), Heard<String>())
    let hearing = pair.watch.receiveImmediate(kinds: ["Int"]) { heard.add((try? $0.value()) ?? 0) }
    let (phone, pause) = (pair.phone, FaultPause())
    let sending = try Thread("sending") {
      FaultPoints.with([FaultRule(nil, path: "members/watch", .pause(pause))]) {
        do {
          try phone.sendImmediately(1, within: .seconds(10), waking: true)
        } catch {
          failures.add("\(error)")
        }
      }
    }
    try TestSupport.eventually("it checks whether the peer runs") { pause.isReached }
    clock.advance(by: .seconds(20))
    pause.open()
    sending.join()
    #expect(failures.all == [])
    try phone.sendImmediately(2, within: .seconds(10))
    try heard.wait("the message in time") { $0.contains(2) }
    #expect(heard.all == [2])
    hearing.stop()
  }

  /// A peer whose directory cannot be opened for a moment still runs.
  @Test func anErrorOfTheSystemIsNotTheEndOfThePeer() throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    let hearing = pair.watch.receiveImmediate(kinds: ["Int"]) { heard.add((try? $0.value()) ?? 0) }
    let rule = FaultRule(
      .open, path: "live/\(pair.watch.incarnation)", .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) {
      let error = try failure { try pair.phone.sendImmediately(1, within: .seconds(600)) }
      #expect(error.code == .exhausted, "\(error)")
      #expect(error.errno == Errno.tooManyOpenFiles.rawValue)
      #expect(error.operation == "send message to" && error.subject == "watch")
    }
    try pair.phone.sendImmediately(2, within: .seconds(600))
    try heard.wait("the second message") { !$0.isEmpty }
    #expect(heard.all == [2])
    hearing.stop()
  }

  /// Another start of the peer would handle the request a second time.
  @Test func aRequestThatThePeerHasSeenStartsThePeerNoMore() throws {
    let pair = try Pair()
    let (phone, kept) = (pair.phone, Heard<Request>())
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    let result = Monitor<Result<Int, any Error>?>(nil)
    let asking = try Thread("asking") {
      let end = Result {
        try phone.request(1, as: Int.self, within: .seconds(600), waking: true)
      }
      result.withLock { $0 = end }
    }
    try kept.wait("the request") { $0.count == 1 }
    pair.watch.leave()
    asking.join()
    responding.stop()
    // A start would fail, because no launch command is registered.
    let error = try failure { _ = try result.withLock { $0 }?.get() }
    #expect(error.code == .unreachable, "\(error)")
    #expect(kept.count == 1)
  }

  /// The deadline passes while the request is placed for a process that has ended; the next
  /// incarnation does not receive the request.
  @Test func aRequestThatHasEndedIsNotPlacedForTheNextIncarnation() throws {
    let clock = TestClock()
    let pair = try Pair { $0.clock = clock }
    let (phone, pause, ended) = (pair.phone, FaultPause(), Heard<String>())
    let asking = try Thread("asking") {
      FaultPoints.with([FaultRule(.rename, path: "/live/", .pause(pause))]) {
        _ = phone.request(1, as: Int.self, within: .seconds(60)) { end in
          switch end {
          case .success(let answer): ended.add("\(answer)")
          case .failure(let error): ended.add("\(error.code)")
          }
        }
      }
    }
    try TestSupport.eventually("the request is about to be placed") { pause.isReached }
    pair.watch.leave()
    let heir = try pair.meeting.another { $0.clock = clock }.join(as: "watch")
    let heard = Heard<Int>()
    let responding = heir.respond(to: Int.self) { (number: Int) -> Int in
      heard.add(number)
      return number * 2
    }
    clock.advance(by: .seconds(60))
    try ended.wait("its end") { !$0.isEmpty }
    pause.open()
    asking.join()
    #expect(try phone.request(2, as: Int.self, within: patience) == 4)
    #expect(heard.all == [2])
    #expect(ended.all == ["timedOut"])
    responding.stop()
  }

  /// The kernel reports the close before it releases the lock: a requester that looked only once
  /// would take the ended peer for a running one until the deadline.
  @Test func aNoticeOfAReleaseIsFollowedByFurtherNotices() throws {
    let pair = try Pair()
    let (storage, heard) = (pair.meeting.container.storage, Heard<Int>())
    let watching = try WatchPlan<Void>(
      join: { (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, "watch", storage, .notices)
      }, interpreter: { PresenceFeed.notices }
    ).observeBriefly(on: nil, { heard.add(1) }, { _ in })
    try heard.wait("the present state") { !$0.isEmpty }
    let before = heard.count
    try pair.watch.home.home.descriptor.open("presence", [.readWrite]).close()
    // The notice itself, and several looks at a presence that is still held.
    #expect(throws: Never.self) {
      try heard.wait("further notices") { $0.count >= before + 4 }
    }
    watching.stop()
  }
}
