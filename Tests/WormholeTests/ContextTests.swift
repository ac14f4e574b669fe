import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Contexts: the latest value that one member sets for another.
@Suite struct ContextTests {
  @Test(.blocking) func latestAloneIsHeard() throws {
    let pair = try Pair()
    for number in 1...3 { try pair.phone.setContext(number) }
    let (heard, senders) = (Heard<Int>(), Heard<String?>())
    let watching = try pair.watch.watchContexts { context in
      senders.add(context.from)
      heard.add((try? context.value()) ?? -1)
    }
    try heard.wait("the latest") { $0 == [3] }
    try pair.phone.setContext(4)
    try heard.waitForLast(4)
    watching.stop()
    #expect(senders.all == ["phone", "phone"])
  }

  /// Inside its callback, a context already is the peer's last received context.
  @Test(.blocking) func isReceivedInsideItsOwnClosure() throws {
    let pair = try Pair()
    let (heard, areReceived) = (Heard<[Int?]>(), Heard<Bool?>())
    let phone = pair.watch.peer("phone")
    let watching = try pair.watch.watchContexts { context in
      let received = try? phone.receivedContext
      areReceived.add(received?.isReceived)
      heard.add([try? context.value(), try? received?.value(as: Int.self)])
    }
    for number in 1...3 {
      try pair.phone.setContext(number)
      try heard.wait("\(number)") { $0.last == [number, number] }
    }
    watching.stop()
    #expect(areReceived.all == [true, true, true])
    #expect(try phone.receivedContext?.value(as: Int.self) == 3)
  }

  /// A program that has not joined can list a peer's pending contexts.
  @Test(.blocking) func isPendingUntilReceived() throws {
    let pair = try Pair()
    #expect(try pair.phone.pendingContexts.isEmpty)
    try pair.phone.setContext(1)
    try pair.meeting.container.peer("watch", from: "till").setContext("open", kind: "state")
    let pending = try pair.meeting.container.peer("watch").pendingContexts
    #expect(pending.map(\.from) == ["phone", "till"])
    #expect(pending.map(\.kind) == ["Int", "state"])
    let heard = Heard<String>()
    let watching = try pair.watch.watchContexts { heard.add($0.from) }
    try heard.wait("both") { Set($0) == ["phone", "till"] }
    try eventually("none is left") { try pair.phone.pendingContexts.isEmpty }
    watching.stop()
  }

  @Test(.blocking) func isKeptUntilSomebodyListens() throws {
    let pair = try Pair()
    try pair.phone.setContext("on")
    #expect(try pair.phone.sentContext?.isReceived == false)
    #expect(try pair.watch.peer("phone").receivedContext == nil)
    let heard = Heard<String>()
    let watching = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? "?") }
    try heard.waitForLast("on")
    watching.stop()
    try eventually("it counts as received") { try pair.phone.sentContext?.isReceived == true }
    // The state is the same after both members have left and joined again.
    pair.watch.leave()
    pair.sender.leave()
    let watch = try pair.meeting.another().join(as: "watch")
    let phone = try pair.meeting.another().join(as: "phone")
    #expect(try watch.peer("phone").receivedContext?.value(as: String.self) == "on")
    #expect(try phone.peer("watch").sentContext?.value(as: String.self) == "on")
  }

  @Test(.blocking) func sameIsToldOnlyIfAsked() throws {
    let pair = try Pair()
    #expect(try pair.phone.setContext(["a": 1]))
    #expect(try !pair.phone.setContext(["a": 1]))
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { _ in heard.add(1) }
    try heard.wait("the first") { $0.count == 1 }
    try eventually("received") { try pair.phone.sentContext?.isReceived == true }
    #expect(try !pair.phone.setContext(["a": 1]))
    #expect(try pair.phone.setContext(["a": 1], evenIfSame: true))
    try heard.wait("the second") { $0.count == 2 }
    #expect(try pair.phone.setContext(["a": 2]))
    try heard.wait("the third") { $0.count == 3 }
    watching.stop()
  }

  /// The kind is part of the context.
  @Test(.blocking) func theSameValueOfAnotherKindIsAnotherContext() throws {
    let pair = try Pair()
    #expect(try pair.phone.setContext("on", kind: "lamp"))
    #expect(try !pair.phone.setContext("on", kind: "lamp"))
    #expect(try pair.phone.setContext("on", kind: "door"))
    let heard = Heard<String>()
    let watching = try pair.watch.watchContexts { heard.add($0.kind) }
    try heard.wait("the latest") { $0 == ["door"] }
    try eventually("received") { try pair.phone.sentContext?.isReceived == true }
    #expect(try !pair.phone.setContext("on", kind: "door"))
    #expect(try pair.phone.setContext("on", kind: "lamp"))
    try heard.wait("the other kind") { $0 == ["door", "lamp"] }
    watching.stop()
  }

  @Test(.blocking) func whatWasBeingHandledComesAgain() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let gate = Gate()
    let first = try pair.watch.watchContexts { _ in gate.pass() }
    try gate.waitForSomebody()
    // As if the process ended during the callback: another instance joins as the member.
    pair.watch.leave()
    let heir = try pair.meeting.another().join(as: "watch")
    let heard = Heard<Int>()
    let second = try heir.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try heard.waitForLast(1)
    gate.open()
    first.stop()
    second.stop()
  }

  /// A declined context waits for the next listener.
  @Test(.blocking) func whatNoListenerAcceptsIsNotReceived() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let declined = Heard<Int>()
    let declining = try pair.watch.watchContexts(
      on: nil,
      accepting: {
        declined.add((try? $0.value()) ?? -1)
        return false
      })
    try declined.wait("it is declined") { $0.first == 1 }
    declining.stop()
    #expect(try pair.phone.sentContext?.isReceived == false)
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    #expect(throws: Never.self) { try heard.waitForLast(1) }
    watching.stop()
  }

  #if FAULT_POINTS
    /// The context must survive a power cut, with its name.
    @Test(.blocking, arguments: [Durability.power, .process])
    func aContextIsAsDurableAsRequested(_ durability: Durability) throws {
      let pair = try Pair()
      for number in 1...2 {
        let syncs = try FaultPoints.with([]) {
          try pair.phone.setContext(number, durability: durability)
        }.filter { $0.hasPrefix("fsync") }
        #expect(syncs.contains { $0.contains("watch/context") } == (durability == .power))
        #expect(syncs.contains { $0.contains("staging/") } == (durability == .power), "\(syncs)")
      }
    }
  #endif

  /// As long as the closure runs, the context has neither its first name nor its last.
  @Test(.blocking) func isTheLatestSentOneWhileItIsHandled() throws {
    let pair = try Pair()
    let gate = Gate()
    let watching = try pair.watch.watchContexts { context in
      if (try? context.value(as: Int.self)) == 2 { gate.pass() }
    }
    try pair.phone.setContext(1)
    try eventually("the first is received") { try pair.phone.sentContext?.isReceived == true }
    try pair.phone.setContext(2)
    try gate.waitForSomebody()
    let sent = try pair.phone.sentContext
    gate.open()
    watching.stop()
    #expect(try sent?.value(as: Int.self) == 2)
    #expect(sent?.isReceived == false)
  }

  /// The closure itself may make its member leave.
  @Test(.blocking) func whatMakesItsMemberLeaveIsNotReceived() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let (watch, left) = (pair.watch, Heard<Int>())
    let watching = try watch.watchContexts { _ in
      watch.leave()
      left.add(1)
    }
    try left.wait("the member has left") { $0 == [1] }
    watching.stop()
    // The closure's return has no effect any more.
    watch.settle()
    #expect(try pair.files("context") == ["phone,taking"])
    #expect(try pair.phone.sentContext?.isReceived == false)
  }

  /// If a member leaves during a callback, the next incarnation receives the context.
  @Test(.blocking) func whatEndsAfterLeavingIsNotReceived() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let gate = Gate()
    let first = try pair.watch.watchContexts { _ in gate.pass() }
    try gate.waitForSomebody()
    pair.watch.leave()
    gate.open()
    first.stop()
    #expect(try pair.phone.sentContext?.isReceived == false)
    let heir = try pair.meeting.another().join(as: "watch")
    let heard = Heard<Int>()
    let second = try heir.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try heard.waitForLast(1)
    second.stop()
  }

  @Test func sequenceHasEach() async throws {
    let pair = try Pair()
    try await pair.phone.setContext(1)
    var heard: [Int] = []
    for try await context in pair.watch.receivedContexts {
      heard.append(try context.value())
      if heard.count == 2 { break }
      try await pair.phone.setContext(2)
    }
    #expect(heard == [1, 2])
  }

  @Test(.blocking) func aSequenceEndsWhenItsMemberLeaves() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let (watch, heard, ended) = (pair.watch, Heard<Int>(), Heard<Bool>())
    Task.detached {
      do {
        for try await context in watch.receivedContexts { heard.add(try context.value()) }
        ended.add(true)
      } catch {
        ended.add(false)
      }
    }
    // A loop that begins after the leaving is refused.
    try heard.wait("the context") { $0 == [1] }
    watch.leave()
    try ended.wait("the end of the loop") { !$0.isEmpty }
    #expect(ended.all == [true])
  }

  @Test(.blocking) func namelessSenderIsRefused() throws {
    let meeting = try Meeting()
    let error = try failure { try meeting.container.peer("watch").setContext(1) }
    #expect(error.code == .invalidName)
  }

  @Test(.blocking) func damagedContextIsPassedOver() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    try pair.meeting.overwrite("members/watch/context/phone,next", Array("junk".utf8))
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try eventually("it is out of the way") { try pair.phone.sentContext == nil }
    try pair.phone.setContext(2)
    try heard.waitForLast(2)
    #expect(heard.all == [2])
    watching.stop()
  }

  /// No member has such a name, and the file stays where another tool has put it.
  @Test(.blocking) func aContextOfAnImpossibleSenderIsNotReceived() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let bytes = try pair.meeting.bytes(of: "members/watch/context/phone,next")
    let contexts = try pair.meeting.folder("members/watch/context")
    try contexts.open("%,next", [.writeOnly, .create], mode: 0o600).write(bytes)
    let heard = Heard<String>()
    let watching = try pair.watch.watchContexts { heard.add($0.from) }
    // Senders follow each other in the order of their names.
    try heard.waitForLast("phone")
    watching.stop()
    pair.watch.settle()
    #expect(heard.all == ["phone"])
    #expect(try pair.files("context") == ["%,next", "phone"])
  }

  /// No listener receives a damaged context, so the context before it stays the last one.
  @Test(.blocking) func aDamagedContextLeavesTheReceivedOne() throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    try pair.phone.setContext(1)
    let first = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try heard.waitForLast(1)
    first.stop()
    pair.watch.settle()
    try pair.phone.setContext(2)
    try pair.meeting.overwrite("members/watch/context/phone,next", Array("junk".utf8))
    let second = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try eventually("it is out of the way") { try pair.files("context") == ["phone"] }
    second.stop()
    #expect(heard.all == [1])
    #expect(try pair.watch.peer("phone").receivedContext?.value(as: Int.self) == 1)
    #expect(try !pair.phone.setContext(1))
    #expect(try pair.phone.setContext(2))
  }
}

/// Sending the elements of an asynchronous sequence.
@Suite struct SequenceSendingTests {
  @Test func sendsAllInOrder() async throws {
    let pair = try Pair()
    var options = SendOptions()
    options.durability = .process
    let numbers = AsyncStream<Int> { stream in
      for number in 1...500 { stream.yield(number) }
      stream.finish()
    }
    let count = try await pair.phone.send(each: numbers, options)
    #expect(count == 500)
    let files = try pair.phone.pendingMessages
    #expect(files.map(\.count).reduce(0, +) == 500)
    #expect(files.count < 100)
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    try await heard.comes("all") { $0.count == 500 }
    #expect(heard.all == Array(1...500))
    receiving.stop()
  }

  @Test func tellsHowManyWereSentWhenItFails() async throws {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 2 }
    let numbers = AsyncStream<Int> { stream in
      for number in 1...1000 { stream.yield(number) }
      stream.finish()
    }
    let progress = Heard<Int>()
    await #expect(throws: WormholeError.self) {
      try await pair.phone.send(each: numbers) { progress.add($0) }
    }
    #expect(try pair.phone.pendingMessages.map(\.count).reduce(0, +) == progress.all.last)
  }

  /// The sequence has ended, and the sender only waits for space.
  @Test func aTaskThatIsCancelledWaitsForNoRoom() async throws {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 1 }
    try await pair.phone.send(0, .quick())
    let (begin, gate) = (Instant.now, Gate())
    // Tasks of other tests occupy the threads of the pool.
    let longest = TestRun.isMutant ? patience : patience * 10
    let numbers = AsyncStream<Slow> { stream in
      stream.yield(Slow(text: "", gate: gate))
      stream.finish()
    }
    let sending = Task {
      try await failure {
        try await pair.phone.send(each: numbers, .quick { $0.whenFull = .wait(longest) })
      }
    }
    try await gate.somebodyComes()
    gate.open()
    sending.cancel()
    #expect(try await sending.value.code == .cancelled)
    #expect(Instant.now - begin < longest)
    #expect(try pair.files("inbox").count == 1)
  }

  /// A value whose encoding throws when its number is 13.
  private struct Picky: Codable, Sendable {
    let number: Int

    init(_ number: Int) { self.number = number }
    init(from decoder: any Decoder) throws {
      number = try decoder.singleValueContainer().decode(Int.self)
    }
    func encode(to encoder: any Encoder) throws {
      guard number != 13 else { throw Refusal() }
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
  }

  @Test func nothingIsSentAfterTheFirstFailure() async throws {
    let pair = try Pair()
    var sum = 0
    for _ in 1...20 {
      let numbers = AsyncStream<Picky> { stream in
        for number in 1...300 { stream.yield(Picky(number)) }
        stream.finish()
      }
      let progress = Heard<Int>()
      await #expect(throws: WormholeError.self) {
        try await pair.phone.send(each: numbers, .quick()) { progress.add($0) }
      }
      #expect(progress.all.last ?? 0 <= 12)
      sum += progress.all.last ?? 0
      #expect(try pair.phone.pendingMessages.map(\.count).reduce(0, +) == sum)
    }
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive { heard.add(try $0.value(as: Picky.self).number) }
    try await becomes("all came") { heard.count == sum }
    #expect(heard.all.allSatisfy { $0 < 13 })
    receiving.stop()
  }

  @Test func whatWasSentOfAPartThatFailedIsCounted() async throws {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 1 }
    let part = String(repeating: "x", count: 400_000)
    // The texts arrive together, and take three files.
    let gate = Gate()
    let texts = AsyncStream<Slow> { stream in
      stream.yield(Slow(text: "", gate: gate))
      for _ in 1...5 { stream.yield(Slow(text: part, gate: nil)) }
      stream.finish()
    }
    let progress = Heard<Int>()
    let sending = Task {
      try await failure { try await pair.phone.send(each: texts, .quick()) { progress.add($0) } }
    }
    try await gate.somebodyComes()
    gate.open()
    #expect(try await sending.value.code == .full)
    #expect(try pair.phone.pendingMessages.map(\.count).reduce(0, +) == progress.all.last)
  }

  /// A value whose encoding a gate can pause.
  private struct Slow: Encodable, Sendable {
    let text: String
    let gate: Gate?

    func encode(to encoder: any Encoder) throws {
      gate?.pass()
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  @Test func outcomesComeToASequence() async throws {
    let pair = try Pair()
    var outcomes = pair.sender.outcomes.makeAsyncIterator()
    let receiving = try pair.watch.receive(Int.self) { _, _ in }
    let sent = Set(try (1...3).map { try pair.phone.send($0).id })
    var told: Set<String> = []
    while told.count < 3, let outcome = try await outcomes.next() {
      #expect(outcome.to == "watch")
      #expect(outcome.status == .delivered)
      told.insert(outcome.id)
    }
    #expect(told == sent)
    receiving.stop()
  }
}
