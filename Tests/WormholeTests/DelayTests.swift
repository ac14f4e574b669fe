import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Messages that are delayed.
@Suite struct DelayTests {
  /// The wall clock of all processes here, which the test moves.
  private let clock: Monitor<Int64>
  private let meeting: Meeting
  private let watch: Peer

  init() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    self.clock = clock
    meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    watch = meeting.container.peer("watch")
  }

  private func pass(_ time: Duration) {
    clock.withLock { $0 += time.inNanosecondsClamped }
  }

  private func another() throws -> SharedContainer {
    try meeting.another { [clock] in $0.environment.sinceEpoch = { clock.withLock { $0 } } }
  }

  private func delayed(
    _ delay: Duration, _ set: (inout SendOptions) -> Void = { _ in }
  ) -> SendOptions {
    .quick {
      $0.delay = delay
      set(&$0)
    }
  }

  private func files(_ part: String) throws -> [String] {
    try meeting.names("members/watch/\(part)")
  }

  // MARK: Delivery

  /// The order is that of the moments, behind what waits.
  @Test func theOrderIsByDueTime() async throws {
    for (number, delay) in [(1, 40), (2, 20), (3, 30)] {
      try await watch.send(number, delayed(.seconds(delay)))
    }
    try await watch.send(4, .quick())
    pass(.seconds(60))
    let heard = Heard<Handed>()
    let receiving = try await another().join(as: "watch").note(heard)
    await #expect(throws: Never.self) { try await heard.comes("all") { $0.count == 4 } }
    receiving.stop()
    // Delivered when the receiver began to look, and numbered then.
    #expect(heard.all.map(\.number).filter { $0 != 4 } == [2, 3, 1])
    #expect(heard.all.allSatisfy { $0 == Handed($0.number) })
    #expect(try files("later") == [] && files("inbox") == [])
  }

  @Test func aDueMessageGoesBehindTheWaitingOnes() async throws {
    try await watch.send(1, delayed(.seconds(10)))
    try await watch.send(2, .quick())
    pass(.seconds(11))
    // A listing delivers as well.
    let queue = try watch.queue
    #expect(queue.map(\.state) == [.waiting, .waiting])
    let heard = Heard<Handed>()
    let receiving = try await another().join(as: "watch").note(heard)
    try await heard.comes("both") { $0.count == 2 }
    receiving.stop()
    #expect(heard.all == [Handed(2), Handed(1)])
  }

  /// With the clock of the machine: the sends must take less than the delays.
  @Test(.notSanitized("delays of some seconds"))
  func aRunningReceiverIsOnTime() async throws {
    let container = try await SharedContainer(directory: meeting.path)
    let member = try await container.join(as: "watch")
    let heard = Heard<Int>()
    let receiving = try member.receive { message in heard.add(try message.value(as: Int.self)) }
    let peer = container.peer("watch")
    let begin = Instant.now
    try await peer.send(1, delayed(.seconds(5)))
    try await peer.send(2, delayed(.milliseconds(2500)))
    try await peer.send(3, .quick())
    let sending = Instant.now - begin
    await #expect(throws: Never.self) { try await heard.comes("all") { $0.count == 3 } }
    // On a very busy machine a message may be due before the next one is sent.
    #expect(heard.all == [3, 2, 1] || sending > .seconds(2))
    #expect(Instant.now - begin >= .seconds(5))
    receiving.stop()
  }

  @Test(.notSanitized("a delay of some seconds"))
  func workersDeliverToTheirQueue() async throws {
    let container = try await SharedContainer(directory: meeting.path)
    let queue = container.queue("jobs", of: Int.self)
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    let begin = Instant.now
    try await queue.send(1, delayed(.seconds(3)) { $0.orderingKey = "a" })
    try await queue.send(2, .quick { $0.orderingKey = "a" })
    let sending = Instant.now - begin
    await #expect(throws: Never.self) { try await heard.comes("both") { $0.count == 2 } }
    #expect(Instant.now - begin >= .seconds(3))
    // On a very busy machine the first one may be due before the second one is sent.
    #expect(heard.all == [2, 1] || sending > .seconds(2))
    working.stop()
  }

  /// More than a receiver remembers, all overdue; each arrives once, though a listing delivers too.
  @Test(arguments: [false, true])
  func manyAreDeliveredOnce(_ isListed: Bool) async throws {
    for number in 1...1500 {
      try await watch.send(number, delayed(.seconds(Double(10 + number % 7))))
    }
    pass(.seconds(100))
    let heard = Heard<Int>()
    let receiving = try await another().join(as: "watch").receive { message in
      heard.add(try message.value(as: Int.self))
    }
    if isListed { _ = try watch.queue }
    await #expect(throws: Never.self) { try await heard.comes("all") { $0.count >= 1500 } }
    receiving.stop()
    #expect(heard.all.sorted() == Array(1...1500))
    #expect(try watch.queue.isEmpty)
  }

  /// The kernel lets nobody but the owner move a directory.
  @Test(.blocking) func aDirectoryAmongTheDelayedMessagesHoldsUpNone() throws {
    try watch.send(1, delayed(.seconds(10)) { $0.id = "directory" })
    let later = try meeting.folder("members/watch/later")
    let name = try #require(try files("later").first)
    try later.unlink(name)
    try later.makeDirectory(name, mode: 0o700)
    try watch.send(2, delayed(.seconds(20)))
    pass(.seconds(30))
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    let rule = FaultRule(.rename, path: "directory", persistent: true, .fail(.accessDenied))
    FaultPoints.with([rule]) { DueMessages.deliver(to: home, meeting.container) }
    #expect(try files("inbox").count == 1)
    #expect(try files("later") == [name])
  }

  // MARK: Senders

  @Test func theSenderFollowsItsMessage() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let sent = try await phone.peer("watch").send(1, delayed(.seconds(10)))
    #expect(try sent.state == .delayed)
    #expect(try sent.value(as: Int.self) == 1)
    #expect(try phone.peer("watch").pendingMessages.map(\.id) == [sent.id])
    pass(.seconds(11))
    #expect(try phone.peer("watch").queue.count == 1)
    #expect(try sent.state == .waiting && files("later") == [])
    // The same object, under another name by now.
    #expect(try phone.peer("watch").pendingMessages.first === sent)
    let heard = Heard<Handed>()
    let receiving = try await another().join(as: "watch").note(heard)
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    receiving.stop()
    #expect(heard.all == [Handed(1)])
    try await eventuallyAsync("the outcome is not kept") {
      try meeting.names("members/phone/receipts") == []
    }
  }

  @Test func theNextIncarnationFollowsIt() async throws {
    let phone = try await another().join(as: "phone")
    let sent = try await phone.peer("watch").send(1, delayed(.seconds(10)))
    await phone.leave()
    let again = try await another().join(as: "phone")
    let pending = try #require(try again.peer("watch").pendingMessages.first)
    #expect(pending.id == sent.id && pending.notBefore == sent.notBefore)
    #expect(try pending.state == .delayed)
    pass(.seconds(11))
    let receiving = try await another().join(as: "watch").receive { _ in }
    #expect(try await pending.waitForStatus(within: patience) == .delivered)
    receiving.stop()
  }

  @Test func aDelayedMessageIsCancelled() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let peer = phone.peer("watch")
    let first = try await peer.send(1, delayed(.seconds(10)))
    let second = try await peer.send(2, delayed(.seconds(10)) { $0.id = "two" })
    let third = try await peer.send(3, delayed(.seconds(10)) { $0.kind = "Other" })
    let fourth = try await peer.send(4, delayed(.seconds(10)))
    #expect(try first.cancel() == .cancelled)
    #expect(try watch.cancel(id: "two") == .cancelled)
    #expect(try await watch.purge(kind: "Other") == 1)
    for sent in [first, second, third] {
      #expect(try await sent.waitForStatus(within: patience) == .cancelled)
    }
    // After the delay, by the object from before.
    pass(.seconds(11))
    #expect(try watch.queue.map(\.id) == [fourth.id])
    #expect(try fourth.cancel() == .cancelled)
    #expect(try await fourth.waitForStatus(within: patience) == .cancelled)
    #expect(try watch.queue.isEmpty && files("later") == [])
  }

  /// The time to live begins at the end of the delay.
  @Test func aDelayedMessageExpires() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let options = delayed(.seconds(10)) { $0.timeToLive = .seconds(5) }
    let sent = try await phone.peer("watch").send(1, options)
    pass(.seconds(14))
    #expect(try watch.queue.map(\.id) == [sent.id])
    #expect(sent.status == nil)
    let unseen = try await phone.peer("watch").send(2, options)
    pass(.seconds(16))
    #expect(try watch.queue.isEmpty)
    for one in [sent, unseen] {
      #expect(try await one.waitForStatus(within: patience) == .expired)
    }
  }

  /// No receiver and no listing is needed.
  @Test func whoWaitsIsToldOfTheExpiry() async throws {
    let container = try await SharedContainer(directory: meeting.path)
    let phone = try await container.join(as: "phone")
    let options = delayed(.milliseconds(100)) { $0.timeToLive = .milliseconds(100) }
    let (begin, sent) = (Instant.now, try await phone.peer("watch").send(1, options))
    #expect(try await sent.waitForStatus(within: patience) == .expired)
    #expect(Instant.now - begin >= .milliseconds(190))
    #expect(try files("later") == [])
  }

  @Test func anIdIsUsedOnceAtATime() async throws {
    let options = delayed(.seconds(10)) { $0.id = "one" }
    let phone = try await meeting.container.join(as: "phone")
    let peer = phone.peer("watch")
    let sent = try await peer.send(1, options)
    let error = await #expect(throws: WormholeError.self) { try await peer.send(2, options) }
    #expect(error?.code == .conflict)
    #expect(try sent.cancel() == .cancelled)
    let next = try await peer.send(3, options)
    // The receipt of the first message is not the second one's.
    #expect(try await sent.waitForStatus(within: patience) == .cancelled)
    #expect(next.status == nil)
    #expect(try next.state == .delayed)
  }

  // MARK: Looking

  @Test func delayedMessagesAreListedLast() async throws {
    try await watch.send(1, delayed(.seconds(10)) { $0.isUrgent = true })
    try await watch.send(2, .quick())
    let queue = try watch.queue
    #expect(queue.map(\.state) == [.waiting, .delayed])
    let due = try #require(queue[1].notBefore).timeIntervalSince1970
    let expected = Double(clock.withLock { $0 }) / 1e9 + 10
    #expect(abs(due - expected) < 0.001 && queue[0].notBefore == nil)
    let findings = meeting.container.inspectMail().map { "\($0)" }
    #expect(findings.contains { $0.contains("1 message is delayed") })
    #expect(!findings.contains { $0.contains("foreign") })
    // The member cannot be removed without them.
    #expect(try watch.cancel(id: queue[0].id) == .cancelled)
    let error = #expect(throws: WormholeError.self) {
      try meeting.container.storage.removeMember("watch")
    }
    #expect(error?.code == .refused)
    #expect(try watch.cancel(id: queue[1].id) == .cancelled)
    #expect(try meeting.container.storage.removeMember("watch"))
  }

  @Test(.blocking) func theyCountForTheBoundsOfTheQueue() throws {
    let container = try another { $0.mailbox.maximumQueuedMessages = 2 }
    let peer = container.peer("watch")
    for number in 1...2 { try peer.send(number, delayed(.seconds(10))) }
    let error = #expect(throws: WormholeError.self) { try peer.send(3, delayed(.seconds(10))) }
    #expect(error?.code == .full)
  }

  private func another(_ set: (inout Options) -> Void) throws -> SharedContainer {
    try meeting.another { [clock] in
      $0.environment.sinceEpoch = { clock.withLock { $0 } }
      set(&$0)
    }
  }

  // MARK: Limits

  @Test func delaysAtTheirLimits() async throws {
    let now = Date(sinceEpoch: clock.withLock { $0 })
    try await watch.send(1, delayed(.seconds(30 * 86_400)))
    let refused = [
      delayed(.seconds(30 * 86_400 + 1)), delayed(.seconds(Int64.max)),
      .quick { $0.notBefore = now + 31 * 86_400 }, .quick { $0.notBefore = .distantFuture },
    ]
    for options in refused {
      let error = await #expect(throws: WormholeError.self) { try await watch.send(2, options) }
      #expect(error?.code == .tooLarge)
    }
    // What is due already is not delayed.
    let past = [
      delayed(.zero), delayed(.seconds(-5)), .quick { $0.notBefore = now - 1 },
      .quick { $0.notBefore = .distantPast },
    ]
    for options in past { try await watch.send(3, options) }
    // Of both, the later one counts.
    try await watch.send(4, delayed(.seconds(1)) { $0.notBefore = now + 60 })
    pass(.seconds(30))
    #expect(try watch.queue.filter { $0.state == .delayed }.count == 2)
    #expect(try files("inbox").count == 4)
  }

  @Test(.blocking) func aFileIsNotDelayed() throws {
    try meeting.folder.write("x", to: "file")
    let error = #expect(throws: WormholeError.self) {
      try watch.send(file: meeting.folder.path + "/file", delayed(.seconds(1)))
    }
    #expect(error?.code == .refused)
    #expect(try watch.queue.isEmpty)
  }

  // MARK: Names

  private func name(_ due: Int64, epoch: Int) -> DelayedName {
    DelayedName(due, epoch: epoch) { stamp in
      MessageName(isUrgent: false, stamp, wantsReceipt: true, count: 1, id: "a", from: "")
    }
  }

  @Test(.blocking) func namesStateTheMoment() throws {
    let moments: [Int64] = [0, 1, 244, 245, 999_999, 1_000_000, Clocks.sinceEpoch, 1 << 62]
    for moment in moments {
      let name = name(moment, epoch: 7)
      #expect(name.due >= moment && name.due - moment <= 250 && name.epoch == 7)
      #expect(DelayedName(name.text) == name)
    }
    let ordered = moments.map { name($0, epoch: 1).text }
    #expect(ordered == ordered.sorted())
  }

  /// A message from before a restart may have been handled then.
  @Test(.blocking) func aRestartMarksDelayedMessages() {
    let now = MessageStamp(epoch: 3, nanoseconds: 1000)
    let (first, second) = (name(2_000_000_000, epoch: 2), name(3_000_000_000, epoch: 2))
    let arrived = [first, second].map { $0.arrived(at: now).stamp }
    #expect(arrived[0] < arrived[1] && arrived[1] < now && arrived[0].epoch == 2)
    #expect(arrived[0] >= first.firstStamp(at: now))
    #expect(arrived[0] > MessageStamp(epoch: 2, nanoseconds: Clocks.sinceBoot))
    #expect(name(5, epoch: 3).arrived(at: now).stamp == now)
  }

  /// A notice may be lost between the last look at the names and the choice of the pause.
  ///
  /// It leaves the least limit of all.
  @Test(.blocking) func aLostNoticeMakesThePauseShort() throws {
    let now = Clocks.sinceEpoch
    #expect(DueMessages.State().pause(from: now) == 1_000_000)
    #expect(DueMessages.State().pause(from: .max) == 1_000_000)
    #expect(DueMessages.State(limit: .max).pause(from: now) == nil)
    #expect(DueMessages.State(limit: now + 5_000_000).pause(from: now) == 5_000_000)
    #expect(DueMessages.State(limit: .max - 1).pause(from: .min) == .max)
  }
}
