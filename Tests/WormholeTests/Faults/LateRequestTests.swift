import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

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
    let pair = try Pair()
    let (phone, pause, ended) = (pair.phone, FaultPause(), Heard<String>())
    let asking = try Thread("asking") {
      FaultPoints.with([FaultRule(.rename, path: "/live/", .pause(pause))]) {
        _ = phone.request(1, as: Int.self, within: .milliseconds(100)) { end in
          switch end {
          case .success(let answer): ended.add("\(answer)")
          case .failure(let error): ended.add("\(error.code)")
          }
        }
      }
    }
    try eventually("the request is about to be placed") { pause.isReached }
    pair.watch.leave()
    let heir = try pair.meeting.another().join(as: "watch")
    let heard = Heard<Int>()
    let responding = heir.respond(to: Int.self) { (number: Int) -> Int in
      heard.add(number)
      return number * 2
    }
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
