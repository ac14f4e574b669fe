import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Listing and changing members' queues from outside; guests, and senders by name.
@Suite struct QueueTests {
  @Test(.blocking) func listsWhatWaitsInOrder() throws {
    let pair = try Pair()
    try pair.phone.send("first")
    try pair.phone.send(contentsOf: ["a", "b", "c"])
    var options = SendOptions()
    options.isUrgent = true
    options.id = "now"
    try pair.meeting.container.peer("watch").send(1, options)
    let queue = try pair.meeting.container.peer("watch").queue
    #expect(queue.map(\.count) == [1, 1, 3])
    #expect(queue.map(\.kind) == ["Int", "String", "String"])
    #expect(queue.map(\.from) == [nil, "phone", "phone"])
    #expect(queue.map(\.isUrgent) == [true, false, false])
    #expect(queue[0].id == "now")
    #expect(queue.allSatisfy { $0.state == .waiting && $0.size > 50 && $0.sentAt != nil })
    #expect(queue.allSatisfy { $0.damage == nil })
  }

  @Test func whatIsInHandComesFirst() async throws {
    let pair = try Pair()
    try await pair.phone.send("first")
    try await pair.phone.send("second")
    var messages = pair.watch.deliveries.makeAsyncIterator()
    let message = try #require(try await messages.next())
    let queue = try pair.phone.queue
    #expect(queue.map(\.state) == [.claimed, .waiting])
    #expect(queue.map(\.attempt) == [1, 0])
    #expect(try pair.phone.cancel(id: queue[0].id) == .tooLate)
    try message.acknowledge()
    #expect(try pair.phone.queue.map(\.id) == [queue[1].id])
  }

  /// The receiver is killed: no process has the message, and the next receiver gets it.
  @Test(.blocking) func aMessageOfAKilledReceiverIsInterrupted() throws {
    let pair = try Pair()
    let peer = pair.sender.peer("printer")
    let sent = try peer.send("page", durability: .process, id: "one")
    let environment = ["WORMHOLE_CONTAINER=\(pair.meeting.path)"]
    let stage = try Stage()
    let killed = try stage.run(
      "wormhole receive --as printer --quiet --exec 'kill -KILL $PPID'", environment: environment)
    #expect(killed.status == .exited(137), "\(killed.errors)")
    try eventually("the name is free") { try peer.reachability == .notRunning }
    #expect(try peer.queue.map(\.state) == [.interrupted] && peer.queue[0].attempt == 1)
    #expect(try sent.state == .interrupted)
    let listed = try stage.run("wormhole queue printer | cut -f 1,2", environment: environment)
    #expect(listed.output == "one\tinterrupted (1)\n")
    let printer = try pair.meeting.container.join(as: "printer")
    let message = try printer.take(1)[0]
    #expect(try peer.queue.map(\.state) == [.claimed] && sent.state == .claimed)
    try message.acknowledge()
  }

  @Test(.blocking) func aPeerThatNobodyKnowsHasNothing() throws {
    let meeting = try Meeting()
    let nobody = meeting.container.peer("nobody")
    #expect(try nobody.queue.isEmpty)
    #expect(try nobody.deadLetters.isEmpty)
    #expect(try nobody.cancel(id: "1") == .tooLate)
    #expect(try !nobody.retry(id: "1"))
    #expect(try !nobody.discard(id: "1"))
    #expect(try meeting.container.members().isEmpty)
  }

  @Test(.blocking) func aDamagedMessageIsListed() throws {
    let pair = try Pair()
    try pair.phone.send("sound")
    let inbox = try Descriptor.open(
      path: pair.meeting.path + "/members/watch/inbox", [.readOnly, .directory])
    try pair.meeting.overwrite("members/watch/inbox/" + inbox.names()[0], [1, 2, 3])
    let queue = try pair.phone.queue
    #expect(queue.count == 1)
    #expect(queue[0].kind == nil)
    #expect(queue[0].from == "phone")
    #expect(queue[0].damage != nil)
  }

  @Test func cancellingTellsTheSender() async throws {
    let pair = try Pair()
    let sent = try await pair.phone.send("never")
    #expect(try pair.meeting.container.peer("watch").cancel(id: sent.id) == .cancelled)
    #expect(try await sent.waitForStatus(within: patience) == .cancelled)
    #expect(try pair.phone.queue.isEmpty)
    #expect(try pair.meeting.container.peer("watch").cancel(id: sent.id) == .tooLate)
  }

  /// Makes the watch dead-letter all messages that it receives.
  private func giveUp(_ pair: Pair, _ sent: Sent) async throws {
    let receiving = try pair.watch.receive { _ in throw Refusal() }
    _ = try await sent.waitForStatus(within: patience)
    receiving.stop()
  }

  private func pair() throws -> Pair {
    try Pair {
      $0.mailbox.retryDelay = .milliseconds(1)
      $0.mailbox.attempts = 2
    }
  }

  @Test func aDeadLetterIsHandledOnceMore() async throws {
    let pair = try pair()
    let sent = try await pair.phone.send("poison")
    try await giveUp(pair, sent)
    let letters = try pair.phone.deadLetters
    #expect(letters.map(\.id) == [sent.id])
    #expect(letters[0].attempts == 2)
    #expect(letters[0].from == "phone")
    #expect(letters[0].kind == "String")
    #expect(letters[0].reason == "\(Refusal())")
    #expect(letters[0].failedAt != nil)
    #expect(try pair.phone.retry(id: sent.id))
    #expect(try !pair.phone.retry(id: sent.id))
    #expect(try pair.phone.deadLetters.isEmpty)
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, message in
      heard.add("\(value) \(message.attempt) \(message.isRedelivered) \(message.from ?? "")")
    }
    try await heard.comes("it") { $0.last == "poison 1 true phone" }
    receiving.stop()
  }

  @Test func aRetriedMessageMayBeGivenUpAgain() async throws {
    let pair = try pair()
    let sent = try await pair.phone.send("poison")
    try await giveUp(pair, sent)
    #expect(try pair.phone.retry(id: sent.id))
    let receiving = try pair.watch.receive { _ in throw Refusal() }
    try await eventuallyAsync("it is given up again") { try !pair.phone.deadLetters.isEmpty }
    receiving.stop()
    #expect(try pair.phone.queue.isEmpty)
    #expect(try pair.phone.deadLetters.map(\.id) == [sent.id])
    #expect(try pair.phone.discard(id: sent.id))
    let dead = try Descriptor.open(
      path: pair.meeting.path + "/members/watch/dead", [.readOnly, .directory])
    #expect(try dead.names() == [])
  }

  /// A member's name that ends like one of the library's names is an ordinary name.
  @Test func aSenderMayBeCalledReason() async throws {
    let pair = try pair()
    let sender = try await pair.meeting.container.join(as: "phone.reason")
    let sent = try await sender.peer("watch").send("poison")
    try await giveUp(pair, sent)
    #expect(try pair.phone.deadLetters.map(\.from) == ["phone.reason"])
  }

  /// A request for the pending messages takes no outcome from a waiter.
  @Test func lookingAtWhatIsOutstandingTakesNothing() async throws {
    let pair = try Pair()
    let sent = try await pair.phone.send("one")
    #expect(try pair.phone.pendingMessages.first === sent)
    let receiving = try pair.watch.receive { _ in }
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    receiving.stop()
  }

  // MARK: Senders that have not joined

  @Test(.blocking) func aNameMayBeUsedByWhoHasNotJoined() throws {
    let pair = try Pair()
    let peer = pair.meeting.container.peer("watch", from: "script")
    try peer.send("one")
    try pair.meeting.container.peer("watch", from: "phone").send("two")
    #expect(try peer.queue.map(\.from) == ["script", "phone"])
    #expect(try peer.pendingMessages.count == 1)
    #expect(try pair.meeting.container.members().map(\.name) == ["phone", "watch"])
    var options = SendOptions()
    options.wantsOutcome = true
    #expect(try failure { try peer.send("three", options) }.code == .notFound)
    let nameless = pair.meeting.container.peer("watch", from: "")
    #expect(try failure { try nameless.send("four") }.code == .invalidName)
    #expect(try peer.queue.count == 2)
  }

  private func guests(_ meeting: Meeting) throws -> [String] {
    try Descriptor.open(path: meeting.path + "/guests", [.readOnly, .directory]).names()
  }

  @Test func aGuestLearnsHowItEnded() async throws {
    let pair = try Pair()
    let guest = try await pair.meeting.container.guest()
    let peer = guest.peer("watch")
    let (first, second) = (try await peer.send("one"), try await peer.send("two"))
    #expect(try peer.pendingMessages.map(\.id) == [first.id, second.id])
    #expect(try pair.phone.queue.map(\.from) == [nil, nil])
    #expect(try second.cancel() == .cancelled)
    #expect(try await second.waitForStatus(within: patience) == .cancelled)
    let heard = Heard<String?>()
    let receiving = try pair.watch.receive(String.self) { _, message in heard.add(message.from) }
    #expect(try await first.waitForStatus(within: patience) == .delivered)
    #expect(heard.all == [nil])
    #expect(try guests(pair.meeting).count == 1)
    await guest.leave()
    await guest.leave()
    #expect(try guests(pair.meeting) == [])
    receiving.stop()
  }

  @Test(.blocking) func aGuestThatHasGoneNeedNotBeTold() throws {
    let pair = try Pair()
    let guest = try pair.meeting.container.guest()
    try guest.peer("watch").send("one")
    try guest.peer("watch").send("two")
    guest.leave()
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try heard.wait("both") { $0 == ["one", "two"] }
    try eventually("nothing is left") { try pair.phone.queue.isEmpty }
    receiving.stop()
  }

  /// A living guest's directory stays; a dead guest's directory is removed by the next instance.
  @Test(.blocking) func whatADeadGuestLeftIsSwept() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let living = try guests(meeting)
    let other = try Descriptor.open(path: meeting.path + "/guests", [.readOnly, .directory])
    try other.makeDirectory("0123456789abcdef", mode: 0o700)
    try other.makeDirectory("foreign", mode: 0o700)
    let dead = try other.open("0123456789abcdef", [.readOnly, .directory])
    try dead.open("presence", [.writeOnly, .create], mode: 0o600).write("")
    try dead.makeDirectory("receipts", mode: 0o700)
    #expect(try guests(meeting).count == 3)
    _ = try meeting.another()
    #expect(Set(try guests(meeting)) == Set(living + ["foreign"]))
    let staging = try Descriptor.open(path: meeting.path + "/staging", [.readOnly, .directory])
    #expect(try staging.names() == [])
    guest.leave()
  }
}
