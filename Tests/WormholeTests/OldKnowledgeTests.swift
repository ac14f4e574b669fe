import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Knowledge in memory is dropped when its basis has gone.
@Suite(.blocking) struct OldKnowledgeTests {
  private let meeting: Meeting
  private let watch: Member

  init() throws {
    meeting = try Meeting()
    watch = try meeting.container.join(as: "watch")
  }

  private func join() throws -> Member { try meeting.another().join(as: "phone") }

  /// A member whose directory was removed has joined again, and requests the outcome of an earlier
  /// message.
  @Test func aReceiptGoesToWhoeverHasTheNameNow() throws {
    let phone = try join()
    try phone.peer("watch").send(1, .quick())
    try watch.take(1)[0].acknowledge()
    try phone.peer("watch").send(2, .quick())
    let message = try watch.take(1)[0]
    phone.leave()
    #expect(try run("rm", ["-r", meeting.path + "/members/phone"]).status == .exited(0))
    let sent = try join().peer("watch").pendingMessages
    #expect(sent.count == 1)
    try message.acknowledge()
    #expect(sent.first?.waitForEnd(until: .now + patience) == .delivered)
  }

  /// The same for a member whose directory another program has moved away.
  @Test func aReceiptDoesNotFollowADirectoryThatWasMovedAway() throws {
    var phone = try join()
    try phone.peer("watch").send(1, .quick())
    try watch.take(1)[0].acknowledge()
    phone.leave()
    let moved = [meeting.path + "/members/phone", meeting.folder.path + "/away"]
    #expect(try run("mv", moved).status == .exited(0))
    phone = try join()
    #expect(throws: Never.self) {
      try eventually("it is told") {
        let sent = try phone.peer("watch").send(2, .quick())
        try watch.take(1)[0].acknowledge()
        return sent.waitForEnd(until: .now + .milliseconds(100)) == .delivered
      }
    }
  }

  /// If the failed listing counted, the subscriber would not be notified before the next outcome.
  @Test func outcomesThatCouldNotBeListedAreToldLater() throws {
    var phone = try join()
    try phone.peer("watch").send(1, .quick())
    phone.leave()
    try watch.take(1)[0].acknowledge()
    phone = try join()
    let heard = Heard<Outcome>()
    let rule = FaultRule(.getdents, path: "receipts", .fail(.inputOutput))
    try FaultPoints.with([rule]) { try phone.watchOutcomes { heard.add($0) } }
    try heard.wait("it is told") { $0.map(\.status) == [.delivered] }
  }

  /// No notice reports that the folder can be listed now.
  ///
  /// More listings fail than one notice, or the start of a watch, is the cause of.
  @Test func delayedMessagesAreListedUntilItSucceeds() throws {
    try meeting.another().join(as: "till").leave()
    try join().peer("till").send(1, .quick { $0.delay = .milliseconds(1) })
    let faults = (1...4).map { "getdents~till/later@\($0):before:fail=EIO" }
    let till = try Running(
      .receive(meeting.path, "till", log: meeting.folder.path + "/log", until: 1),
      environment: ["WORMHOLE_FAULTS=" + faults.joined(separator: ";")])
    let outcome = try? till.outcome()
    #expect(outcome?.status == .exited(0))
    let failed = outcome?.errors.matches(of: /cannot deliver the delayed messages of 'till'/)
    #expect(failed?.count ?? 0 > 2)
  }

  /// A watcher that lacked a resource for a read still ends up with the latest value.
  @Test func whatCouldNotBeLookedAtIsLookedAtLater() throws {
    let looks = Monitor(0)
    let heard = Heard<Stamp>()
    let listener = Listener(seen: [:]) { heard.add($0.stamp) }
    let error = WormholeError(.tooManyOpenFiles, "read channel", "n")
    listener.join(
      "n",
      ChangeSource(
        look: {
          let isFirst = looks.withLock { looks in
            looks += 1
            return looks == 1
          }
          return WatchResult(name: "n", stamp: isFirst ? .failed(error) : .posted(1))
        }, leave: {}))
    listener.change("n")
    try heard.wait("it is told") { $0 == [.failed(error), .posted(1)] }
    listener.stop()
  }

  /// Arrivals wait for the first listing, because the listed messages may be older; and the first
  /// listing failed.
  @Test func whatCouldNotBeListedIsAnsweredLater() throws {
    let rule = FaultRule(.getdents, path: "live/", .fail(.inputOutput))
    let joined = Monitor<Member?>(nil)
    let calls = try FaultPoints.with([rule]) {
      let member = try meeting.another().join(as: "clock")
      joined.withLock { $0 = member }
    }
    #expect(calls.contains { $0.hasPrefix("getdents") && $0.contains("live/") })
    let clock = try #require(joined.withLock { $0 })
    let responding = clock.respond(to: Int.self) { $0 * 2 }
    let answer = try join().peer("clock").request(7, as: Int.self, within: patience)
    #expect(answer == 14)
    responding.stop()
  }

  /// The names were reported once, and no notice reports that the directories can be watched now.
  @Test func whatCouldNotBeWatchedIsWatchedLater() throws {
    let failed = Heard<LogEntry>()
    let meeting = try Meeting {
      $0.sharing = .group
      $0.log = { failed.add($0) }
    }
    try meeting.container.channel("n").put(1)
    try meeting.container.join(as: "watch").leave()
    let paths = ["channels/n", "members/watch"]
    let directories = try paths.map { try OpenDirectory(meeting.folder($0)) }
    for directory in directories { try directory.descriptor.setMode(0o2777) }
    let container = try meeting.another {
      $0.sharing = .group
      $0.log = { failed.add($0) }
    }
    let (numbers, names) = (Heard<Int?>(), Heard<String>())
    try container.watch(prefix: "", of: Int.self) { numbers.add($0.value) }
    try container.watchMembers { names.add($0.name) }
    try failed.wait("they are refused") { $0.count >= 2 }
    for directory in directories { try directory.descriptor.setMode(0o2770) }
    try numbers.wait("the channel is told") { $0.contains(1) }
    try names.wait("the member is told") { $0.contains("watch") }
    container.close()
  }

  /// No notice reports that the context can be received now.
  @Test func aContextThatCouldNotBeReceivedIsLater() throws {
    let failed = Heard<LogEntry>()
    let till = try meeting.another { $0.log = { failed.add($0) } }.join(as: "till")
    try watch.peer("till").setContext(1)
    let contexts = try meeting.folder("members/till/context")
    try contexts.makeDirectory("watch,taking", mode: 0o700)
    let heard = Heard<Int>()
    try till.watchContexts { heard.add((try? $0.value()) ?? -1) }
    // The first attempts may be those of the listener and of its watch.
    try failed.wait("it cannot be moved") { $0.count >= 3 }
    try contexts.removeDirectory("watch,taking")
    try heard.wait("it is told") { $0 == [1] }
  }

  /// A message that could not be read before its claim has no kind until then, and may be claimed
  /// by a receiver that does not want the message.
  @Test func whatIsClaimedUnreadIsForWhoeverWantsIt() throws {
    let phone = try join()
    func send(_ number: Int) throws -> MessageName {
      var options = SendOptions.quick()
      options.kind = "even"
      try phone.peer("watch").send(number, options)
      let names = try meeting.folder("members/watch/inbox").names()
      return try #require(names.compactMap { MessageName($0) }.max())
    }
    let odd = Heard<Int>()
    try watch.receive(kinds: ["odd"]) { odd.add(try $0.value()) }
    let first = try send(2)
    // No receiver wants the message, so it returns to the inbox.
    #expect(watch.mailbox.claim(first, for: 1) == nil)
    // The receiver may look for the message in the meantime, miss it, and claim it in the same way.
    try eventually("it is put back") {
      try meeting.folder("members/watch/inbox").names() == [first.text]
    }

    let (even, gate) = (Heard<Handed>(), Gate())
    try watch.receive(kinds: ["even"]) { message in
      even.add(try Handed(message))
      gate.pass()
    }
    try gate.waitForSomebody()
    let second = try send(4)
    #expect(watch.mailbox.claim(second, for: 1) == nil)
    gate.open()
    try even.wait("both come") { $0.count == 2 }
    #expect(even.all == [Handed(2), Handed(4)])
    #expect(odd.all == [])
  }

  /// The responder has ended, and the only notice of its end arrived when it could not be checked.
  @Test func whoeverCouldNotBeLookedAtIsKnownNoMore() throws {
    let live = try join().live
    let address = LiveAddress(folder: .members, name: "watch")
    live.peers.hold(address)
    let target = try live.peers.target(address, "ask")
    #expect(target.incarnation == watch.incarnation)
    let ended = Heard<PendingReplies.End>()
    let name = LiveName(try MessageStamp(meeting.container.storage), .question, id: "1")
    let question = PendingReplies.Entry(
      peer: address, incarnation: try #require(Incarnation(rawValue: "0123456789abcdef")),
      storage: meeting.container.storage, file: name, deadline: .now + patience * 2,
      timeout: patience * 2, sight: Monitor(.unseen)
    ) { ended.add($0) }
    #expect(live.asking.expect(question, again: false))
    #expect(live.asking.notePlaced("1"))
    let rule = FaultRule(.ofdquery, path: "watch/presence", .fail(.inputOutput))
    FaultPoints.with([rule]) { live.peers.look(after: address) }
    let calls = try FaultPoints.with { _ = try live.peers.target(address, "ask") }
    #expect(calls.contains { $0.hasPrefix("ofdquery") })
    try ended.wait("it is lost") { $0.count == 1 }
    live.peers.release(address)
  }

  /// The request is registered while the requester leaves, and no callback would receive the reply.
  @Test func aQuestionIsNotExpectedOnceItsAskerHasLeft() throws {
    let phone = try join()
    phone.leave()
    let name = LiveName(try MessageStamp(meeting.container.storage), .question, id: "1")
    let question = PendingReplies.Entry(
      peer: LiveAddress(folder: .members, name: "watch"), incarnation: watch.incarnation,
      storage: meeting.container.storage, file: name, deadline: .now + patience,
      timeout: patience, sight: Monitor(.unseen)
    ) { _ in }
    #expect(!phone.live.asking.expect(question, again: false))
  }

  /// Clocks start again with the machine, and a failure before the restart does not count
  /// afterwards.
  @Test func aFailureOfAnEarlierRunOfTheMachineIsNotThisOnes() {
    var record = WakeRecord(id: "1", started: 1000, by: "test", program: "a", before: nil)
    record.failure = "it ended"
    record.ended = 2000
    #expect(record.verdict(nil, "a", begun: 10, now: 20, grace: .seconds(5)) == .start)
    #expect(
      record.verdict(nil, "a", begun: 2000, now: 2000, grace: .seconds(5)) == .failed("it ended"))
  }
}
