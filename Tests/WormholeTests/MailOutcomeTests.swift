import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The outcomes of messages, as their sender learns them.
@Suite struct MailOutcomeTests {
  private let meeting: Meeting
  private let watch: Member

  init() throws {
    meeting = try Meeting()
    watch = try meeting.container.join(as: "watch")
  }

  private func join() throws -> Member { try meeting.another().join(as: "phone") }

  /// Acknowledges so many messages.
  private func handle(_ count: Int) throws {
    // At most as many as may be claimed at a time.
    for start in stride(from: 0, to: count, by: 100) {
      for message in try watch.take(min(100, count - start)) { try message.acknowledge() }
    }
  }

  @Test(.blocking) func theNextLifeIsToldOnceOfWhatTheLastOneSent() throws {
    let old = try join()
    let peer = old.peer("watch")
    let sent = try (1...3).map { try peer.send($0, .quick { $0.kind = "n" }) }
    try peer.send(contentsOf: [4, 5], .quick())
    old.leave()
    #expect(try sent[1].cancel() == .cancelled)
    try handle(4)
    #expect(try meeting.names("members/phone/receipts").count == 4)
    let new = try join()
    let heard = Heard<Outcome>()
    let watching = try new.watchOutcomes { heard.add($0) }
    try heard.wait("all") { $0.count == 4 }
    try eventually("they are read") { try meeting.names("members/phone/receipts") == [] }
    #expect(heard.all.prefix(3).map(\.id) == sent.map(\.id))
    #expect(heard.all.map(\.status) == [.delivered, .cancelled, .delivered, .delivered])
    #expect(heard.all.map(\.to) == ["watch", "watch", "watch", "watch"])
    #expect(heard.all.map(\.kind) == ["n", "n", "n", "Int"])
    watching.stop()
  }

  /// The sender has left before the outcome, so only the receipt contains what was sent.
  @Test(.blocking) func whatAnEarlierLifeSentIsReadFromItsReceipt() throws {
    let old = try join()
    try old.peer("watch").send("hello", .quick { $0.kind = "greeting" })
    old.leave()
    let new = try join()
    let sent = try #require(try new.peer("watch").pendingMessages.first)
    new.leave()
    try handle(1)
    #expect(try meeting.names("members/phone/receipts").count == 1)
    #expect((try? sent.kind) == "greeting")
    #expect((try? sent.value(as: String.self)) == "hello")
  }

  /// After a restart the sender knows all its messages, pending and settled, from its own files.
  @Test func theNextLifeKnowsWhatTheLastOneSent() async throws {
    let old = try join()
    let peer = old.peer("watch")
    let path = meeting.folder.path + "/ticket.png"
    _ = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    let first = try await peer.send("hello", .quick { $0.kind = "greeting" })
    #expect(try (first.kind, first.value(as: String.self)) == ("greeting", "hello"))
    try await peer.send(contentsOf: [4, 5], .quick())
    let file = try await peer.send(file: path, metadata: ["film": 7], .quick())
    #expect(try file.file == SentFile(name: "ticket.png", size: 0))
    try await peer.send(file: path, .quick())
    await old.leave()
    let new = try join()
    let sent = try new.peer("watch").pendingMessages
    #expect(try sent.map { try $0.kind } == ["greeting", "Int", "Dictionary<String, Int>", "file"])
    #expect(try sent.map { try $0.file?.name } == [nil, nil, "ticket.png", "ticket.png"])
    #expect(try sent[0].value(as: String.self) == "hello")
    #expect(try sent[1].values(as: Int.self) == [4, 5])
    #expect(try failure { _ = try sent[1].value(as: Int.self) }.code == .typeMismatch)
    #expect(try sent[2].value(as: [String: Int].self) == ["film": 7])
    #expect(try failure { _ = try sent[3].value(as: Int.self) }.code == .notFound)
    // A message that was not read before its outcome is known all the same.
    let unseen = try #require(try new.peer("watch").pendingMessages.last)
    try handle(5)
    for one in sent + [unseen] {
      #expect(try await one.waitForStatus(within: patience) == .delivered)
    }
    #expect(try (unseen.kind, unseen.file?.name) == ("file", "ticket.png"))
    #expect(try sent[1].values(as: Int.self) == [4, 5])
  }

  @Test(.blocking) func anOutcomeSaysWhatWasSentByAnEarlierLife() throws {
    let old = try join()
    let path = meeting.folder.path + "/ticket.png"
    _ = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    try old.peer("watch").send("hello", .quick())
    try old.peer("watch").send(contentsOf: [4, 5], .quick())
    try old.peer("watch").send(file: path, metadata: 7, .quick())
    old.leave()
    try handle(4)
    let heard = Heard<Outcome>()
    let member = try join()
    let watching = try member.watchOutcomes { heard.add($0) }
    try heard.wait("all") { $0.count == 3 }
    let all = heard.all
    #expect(try all[0].value(as: String.self) == "hello")
    #expect(try all[1].values(as: Int.self) == [4, 5])
    #expect(all.map(\.count) == [1, 2, 1])
    #expect(all.map(\.file) == [nil, nil, SentFile(name: "ticket.png", size: 0)])
    #expect(try all[2].value(as: Int.self) == 7)
    watching.stop()
  }

  /// A later subscriber is notified of an outcome, unless a `Sent` or another subscriber has
  /// already reported the outcome.
  @Test func anOutcomeIsKeptForWhoeverAsksLater() async throws {
    let member = try join()
    let peer = member.peer("watch")
    let forgotten = try await peer.send(1, .quick()).id
    let (kept, asked) = (try await peer.send(2, .quick()), try await peer.send(3, .quick()))
    try handle(3)
    #expect(try await asked.waitForStatus(within: patience) == .delivered)
    await #expect(throws: Never.self) {
      try await eventuallyAsync("it is no longer kept") {
        try meeting.names("members/phone/receipts").count == 2
      }
    }
    let heard = Heard<String>()
    let watching = try member.watchOutcomes { heard.add($0.id) }
    try await heard.comes("both") { $0.count == 2 }
    #expect(heard.all == [forgotten, kept.id])
    #expect(kept.status == .delivered)
    try await eventuallyAsync("they are read") { try meeting.names("members/phone/receipts") == [] }
    watching.stop()
  }

  /// Of the outcomes that no program ever requests, only the latest are stored.
  @Test(.blocking) func whoNeverAsksKeepsNotAllOutcomes() throws {
    let member = try join()
    let peer = member.peer("watch")
    let receiving = try watch.receive { _ in }
    let sent = try (1...1500).map { _ in try peer.send(1, .quick()).id }
    let last = try peer.send(2, .quick())
    #expect(last.waitForEnd(until: .now + patience) == .delivered)
    try eventually("the oldest are dropped") {
      try meeting.names("members/phone/receipts").count <= 1024
    }
    let kept = try meeting.container.peer("phone").pendingOutcomes.map(\.id)
    #expect(Set(sent.suffix(800)).subtracting(kept).sorted() == [])
    receiving.stop()
  }

  /// While a sender is away, its receipts keep to their limit of space, and the latest remain.
  @Test(.blocking) func receiptsOfASenderThatIsAwayAreBounded() throws {
    let room = 64
    let receiver = try meeting.another { $0.mailbox.maximumReceiptBytes = room * 4096 }.join(
      as: "tv")
    let member = try join()
    let receiving = try receiver.receive { _ in }
    var sent: [String] = []
    for number in 1...600 { sent.append(try member.peer("tv").send(number, .quick()).id) }
    member.leave()
    try eventually("all are handled") {
      try meeting.names("members/tv/inbox") == [] && meeting.names("members/tv/claimed") == []
    }
    receiving.stop()
    // Chance decides when the receipts are counted: on average after every fourth.
    let left = try meeting.names("members/phone/receipts").count
    #expect(left >= room / 8 * 7)
    #expect(left <= room + 60)
    // A large receipt counts with the space that it takes.
    let next = try join()
    let again = try receiver.receive { _ in }
    try next.peer("tv").send(String(repeating: "x", count: room * 2048), .quick())
    next.leave()
    let peer = meeting.container.peer("phone")
    try eventually("it is handled") { try peer.pendingOutcomes.last?.kind == "String" }
    again.stop()
    let outcomes = try peer.pendingOutcomes
    #expect(outcomes.count <= room / 2 + 4)
    #expect(outcomes.last?.kind == "String")
    #expect(Set(sent.suffix(room / 4)).isSubset(of: outcomes.map(\.id)))
    #expect(try peer.removePendingOutcomes() == outcomes.count)
    #expect(try peer.pendingOutcomes.isEmpty)
  }

  /// A receipt of more than one block takes two blocks on disk.
  @Test(.blocking) func aReceiptCountsWithTheBlocksThatItTakes() throws {
    let options: (inout Options) -> Void = { $0.mailbox.maximumReceiptBytes = 16 * 4096 }
    let receiver = try meeting.another(options).join(as: "tv")
    let member = try join()
    let text = String(repeating: "x", count: 5000)
    for _ in 1...16 { try member.peer("tv").send(text, .quick()) }
    member.leave()
    // Receipts of this size are counted at each arrival.
    for message in try receiver.take(16) { try message.acknowledge() }
    let count = try meeting.names("members/phone/receipts").count
    #expect(count == 7 || count == 8)
  }

  /// Pending outcomes are not read again for each new outcome.
  @Test(.blocking) func anOutcomeCostsNoLookAtAllOthers() throws {
    let member = try join()
    let first = try member.peer("watch").send(1, .quick())
    // A link causes no notice, so only a listing finds this receipt.
    let name = try meeting.names("members/watch/inbox")[0]
    let receipts = try meeting.folder("members/phone/receipts")
    try meeting.folder("members/watch/inbox").link(name, to: receipts, name + ".ok")
    let second = try member.peer("tv").send(2, .quick())
    #expect(try second.cancel() == .cancelled)
    #expect(second.waitForEnd(until: .now + patience) == .cancelled)
    #expect(first.status == nil)
    let heard = Heard<String>()
    let watching = try member.watchOutcomes { heard.add($0.id) }
    try heard.wait("the first") { $0 == [first.id] }
    watching.stop()
  }

  /// A receipt is not removed before its callback has returned, whatever arrives in the meantime.
  @Test(.blocking) func aReceiptStaysUntilItWasHeard() throws {
    let member = try join()
    let (gate, heard) = (Gate(), Heard<Outcome>())
    let watching = try member.watchOutcomes { outcome in
      gate.pass()
      heard.add(outcome)
    }
    let peer = member.peer("watch")
    let first = try peer.send(1, .quick())
    try handle(1)
    try gate.waitForSomebody()
    let later = try (2...5).map { try peer.send($0, .quick()) }
    try handle(4)
    try eventually("all have ended") { later.allSatisfy { $0.status == .delivered } }
    #expect(try meeting.names("members/phone/receipts").count == 5)
    gate.open()
    try heard.wait("all") { $0.count == 5 }
    try eventually("they are read") { try meeting.names("members/phone/receipts") == [] }
    #expect(heard.all.map(\.id) == [first.id] + later.map(\.id))
    watching.stop()
  }

  @Test(.blocking) func eachListenerIsToldOnce() throws {
    let member = try join()
    let heard = (0..<3).map { _ in Heard<Outcome>() }
    let watching = try heard.map { heard in try member.watchOutcomes { heard.add($0) } }
    let peer = member.peer("watch")
    for number in 1...200 { try peer.send(number, .quick()) }
    try handle(200)
    for heard in heard { try heard.wait("all") { $0.count >= 200 } }
    try eventually("they are read") { try meeting.names("members/phone/receipts") == [] }
    for heard in heard {
      #expect(heard.count == 200)
      #expect(Set(heard.all.map(\.id)).count == 200)
      #expect(heard.all.allSatisfy { $0.to == "watch" })
    }
    for watching in watching { watching.stop() }
  }

  /// One of several listeners is enough, whichever is the last to have heard.
  @Test(.blocking, arguments: [0, 1]) func whatOneOfTwoHasAcceptedIsOver(_ accepting: Int) throws {
    let member = try join()
    let heard = [Heard<String>(), Heard<String>()]
    let watching = try (0...1).map { index in
      try member.watchOutcomes(on: DispatchQueue(label: "\(index)")) { outcome in
        // The second is called after the first has returned.
        if index == 1 { while heard[0].count == 0 { Processes.yield() } }
        heard[index].add(outcome.id)
        return index == accepting
      }
    }
    try member.peer("watch").send(1, .quick())
    try handle(1)
    for heard in heard { try heard.wait("the outcome") { $0.count == 1 } }
    // What a listener has declined is decided at its end.
    for watching in watching { watching.stop() }
    try eventually("it is over") { try meeting.names("members/phone/receipts") == [] }
    let later = Heard<String>()
    let next = try member.watchOutcomes { later.add($0.id) }
    try member.peer("watch").send(2, .quick { $0.id = "second" })
    try handle(1)
    try later.wait("the second outcome") { !$0.isEmpty }
    #expect(later.all == ["second"])
    next.stop()
  }

  @Test(.blocking) func outcomesAreReportedOnTheGivenQueue() throws {
    let member = try join()
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "mine")
    queue.setSpecific(key: key, value: "mine")
    let names = Heard<String?>()
    let watching = try member.watchOutcomes(on: queue) { _ in
      names.add(DispatchQueue.getSpecific(key: key))
    }
    try member.peer("watch").send(1, .quick())
    try handle(1)
    try names.wait("the outcome") { !$0.isEmpty }
    #expect(names.all == ["mine"])
    watching.stop()
  }

  /// A subscriber that stops leaves its unreported outcomes to the next subscriber.
  @Test(.blocking) func whatAListenerHasNotHeardIsToldToTheNext() throws {
    let member = try join()
    let (gate, heard) = (Gate(), Heard<Outcome>())
    let watching = try member.watchOutcomes { outcome in
      heard.add(outcome)
      gate.pass()
    }
    let peer = member.peer("watch")
    for number in 1...3 { try peer.send(number, .quick()) }
    try handle(3)
    try gate.waitForSomebody()
    let stopper = try Thread("stopper") { watching.stop() }
    gate.open()
    stopper.join()
    let told = heard.count
    let sent = try peer.send(4, .quick())
    try handle(1)
    try eventually("the next has ended") { sent.status != nil }
    let other = Heard<Outcome>()
    let next = try member.watchOutcomes { other.add($0) }
    try other.wait("the rest") { $0.count >= 3 - told }
    #expect(Set(heard.all.map(\.id)).isDisjoint(with: other.all.map(\.id)))
    next.stop()
  }

  /// A subscriber receives the outcomes that arrived between two subscriptions.
  @Test(.blocking) func whatComesWhileNobodyListensWaitsForTheNext() throws {
    let member = try join()
    let peer = member.peer("watch")
    try member.watchOutcomes { _ in }.stop()
    let missed = try peer.send(1, .quick()).id
    try handle(1)
    // The test waits for the outcome of this message, so that the receipts have certainly been
    // read.
    let sent = try peer.send(2, .quick())
    try handle(1)
    try eventually("the later has ended") { sent.status != nil }
    let heard = Heard<String>()
    let watching = try member.watchOutcomes { heard.add($0.id) }
    try heard.wait("the one that was missed") { $0.contains(missed) }
    watching.stop()
  }

  @Test func outstandingAfterARestart() async throws {
    let old = try join()
    for number in 1...3 { try await old.peer("watch").send(number, .quick()) }
    try await old.peer("watch").send(contentsOf: [4, 5], .quick())
    let ids = try old.peer("watch").pendingMessages.map(\.id)
    await old.leave()
    let messages = try watch.take(2)
    let new = try join()
    let sent = try new.peer("watch").pendingMessages
    #expect(sent.map(\.id) == ids)
    #expect(sent.map(\.count) == [1, 1, 1, 2])
    #expect(try sent.map { try $0.state } == [.claimed, .claimed, .waiting, .waiting])
    #expect(try sent[0].cancel() == .tooLate)
    #expect(try sent[3].cancel() == .cancelled)
    for message in messages { try message.acknowledge() }
    #expect(try await sent[0].waitForStatus(within: patience) == .delivered)
    #expect(try await sent[3].waitForStatus(within: patience) == .cancelled)
    #expect(try new.peer("watch").pendingMessages.map(\.id) == [ids[2]])
  }

  /// A request for the pending messages takes no outcome away from earlier waiters.
  @Test func askingWhatIsOutstandingDeafensNobody() async throws {
    let member = try join()
    let sent = try await member.peer("watch").send(1, .quick())
    #expect(try member.peer("watch").pendingMessages.map(\.id) == [sent.id])
    let again = try member.peer("watch").pendingMessages
    try handle(1)
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    #expect(try await again[0].waitForStatus(within: patience) == .delivered)
  }

  /// A message is settled during the request: either the message is not pending, or its outcome
  /// arrives.
  @Test func whatEndsWhileItIsAskedForIsNotWaitedForInVain() async throws {
    let member = try join()
    let peer = member.peer("watch")
    let receiving = try watch.receive { _ in }
    for number in 1...100 {
      try await peer.send(number, .quick())
      for sent in try peer.pendingMessages {
        #expect(try await sent.waitForStatus(within: patience) == .delivered)
      }
    }
    receiving.stop()
  }

  @Test func patienceEndsAndTheMessageIsStillOnItsWay() async throws {
    let member = try join()
    let sent = try await member.peer("watch").send(1, .quick())
    let error = try await failure { try await sent.waitUntilDelivered(within: .milliseconds(1)) }
    #expect(error.code == .timedOut)
    #expect(try sent.state == .waiting)
    let waiting = Task { try await failure { try await sent.waitUntilDelivered() }.code }
    waiting.cancel()
    #expect(try await waiting.value == .cancelled)
    let both = (0..<2).map { _ in Task { try await sent.waitForStatus() } }
    try handle(1)
    for waiting in both { #expect(try await waiting.value == .delivered) }
    #expect(try await sent.waitForStatus() == .delivered)
    #expect(sent.status == .delivered)
  }

  @Test func whoWaitsForACancelledMessageIsTold() async throws {
    let member = try join()
    let sent = try await member.peer("watch").send(1, .quick())
    let waiting = Task { try await failure { try await sent.waitUntilDelivered() }.code }
    #expect(try sent.cancel() == .cancelled)
    #expect(try await waiting.value == .cancelled)
  }

  /// If the sender's directory is gone, receivers can still acknowledge its messages.
  @Test(.blocking) func aSenderThatIsNoMoreNeedNotBeTold() throws {
    let member = try join()
    let sent = try member.peer("watch").send(1, .quick())
    let messages = try watch.take(1)
    member.leave()
    try meeting.folder("members/phone").removeContents()
    try meeting.folder("members").removeDirectory("phone")
    try messages[0].acknowledge()
    #expect(try sent.state == .ended)
  }

  /// A receipt that cannot be written now is written at a later acknowledgement.
  @Test func aReceiptThatCannotBeWrittenIsNotDropped() async throws {
    let member = try join()
    let sent = try await member.peer("watch").send(1, .quick())
    let message = try watch.take(1)[0]
    #if FAULT_POINTS
      FaultPoints.with([FaultRule(.open, path: "phone", .fail(.tooManyOpenFiles))]) {
        let error = try? failure { try message.acknowledge() }
        #expect(error?.code == .exhausted)
      }
    #endif
    #expect(try sent.state == .claimed)
    try message.acknowledge()
    let status = try? await sent.waitForStatus(within: patience)
    #expect(status == .delivered)
  }
}
