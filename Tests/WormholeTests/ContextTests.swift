import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// The state that one member tells another.
@Suite struct ContextTests {
  @Test(.blocking) func latestAloneIsHeard() throws {
    let pair = try Pair()
    for number in 1...3 { try pair.phone.setContext(number) }
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { context in
      #expect(context.from == "phone")
      heard.add((try? context.value()) ?? -1)
    }
    try heard.wait("the latest") { $0 == [3] }
    try pair.phone.setContext(4)
    try heard.waitForLast(4)
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
    // Also after both have ended and come again.
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

  @Test(.blocking) func whatWasBeingHandledComesAgain() throws {
    let pair = try Pair()
    try pair.phone.setContext(1)
    let gate = Gate()
    let first = try pair.watch.watchContexts { _ in gate.pass() }
    try gate.waitForSomebody()
    // As if the process ended in the middle: another becomes the member.
    pair.watch.leave()
    let heir = try pair.meeting.another().join(as: "watch")
    let heard = Heard<Int>()
    let second = try heir.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try heard.waitForLast(1)
    gate.open()
    first.stop()
    second.stop()
  }

  /// What a closure is in the middle of when its member leaves is the next one's to hear.
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
    try pair.phone.setContext(1)
    var heard: [Int] = []
    for try await context in pair.watch.receivedContexts {
      heard.append(try context.value())
      if heard.count == 2 { break }
      try pair.phone.setContext(2)
    }
    #expect(heard == [1, 2])
  }

  @Test(.blocking) func namelessSenderIsRefused() throws {
    let meeting = try Meeting()
    let error = try failure { try meeting.hole.peer("watch").setContext(1) }
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
}

/// Sending what a sequence yields.
@Suite struct SequenceSendingTests {
  @Test func sendsAllInOrder() async throws {
    let pair = try Pair()
    var options = Wormhole.SendOptions()
    options.durability = .process
    let numbers = AsyncStream<Int> { stream in
      for number in 1...500 { stream.yield(number) }
      stream.finish()
    }
    let count = try await pair.phone.send(each: numbers, options)
    #expect(count == 500)
    let files = try pair.phone.outstanding
    #expect(files.map(\.count).reduce(0, +) == 500)
    #expect(files.count < 100)
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == 500 }
    #expect(heard.all == Array(1...500))
    receiving.stop()
  }

  @Test func tellsHowManyWereSentWhenItFails() async throws {
    let pair = try Pair { $0.mail.largestQueue = 2 }
    let numbers = AsyncStream<Int> { stream in
      for number in 1...1000 { stream.yield(number) }
      stream.finish()
    }
    let progress = Heard<Int>()
    await #expect(throws: WormholeError.self) {
      try await pair.phone.send(each: numbers) { progress.add($0) }
    }
    #expect(try pair.phone.outstanding.map(\.count).reduce(0, +) == progress.all.last)
  }

  @Test func outcomesComeToASequence() async throws {
    let pair = try Pair()
    var outcomes = pair.sender.outcomes.makeAsyncIterator()
    let receiving = try pair.watch.receive(Int.self) { _, _ in }
    let sent = Set(try (1...3).map { try pair.phone.send($0).id })
    var told: Set<String> = []
    while told.count < 3, let outcome = try await outcomes.next() {
      #expect(outcome.to == "watch")
      #expect(outcome.end == .delivered)
      told.insert(outcome.id)
    }
    #expect(told == sent)
    receiving.stop()
  }
}
