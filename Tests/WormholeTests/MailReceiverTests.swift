import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Receivers that begin, end, fail and forget.
@Suite struct MailReceiverTests {
  @Test(.blocking) func whatIsNotAcknowledgedStaysInHand() throws {
    let pair = try Pair()
    let sent = try pair.send([1])[0]
    let message = try pair.watch.take(1)[0]
    #expect(try sent.state == .claimed)
    #expect(try pair.phone.pendingMessages.map(\.id) == [sent.id])
    #expect(try sent.cancel() == .tooLate)
    try message.acknowledge()
    try message.acknowledge()
    try message.fail("too late")
    #expect(try sent.state == .ended)
    #expect(try pair.phone.pendingMessages.isEmpty)
  }

  @Test(.blocking) func whatIsLetGoOfWithoutAWordComesAgain() throws {
    let pair = try Pair { $0.mailbox.retryDelay = .milliseconds(1) }
    try pair.send([1])
    try pair.phone.send(contentsOf: [2, 3], .quick())
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive(acknowledging: .explicit) { message in
      let handed = try Handed(message)
      heard.add(handed)
      if handed.attempt > 1 || handed.number == 3 { try message.acknowledge() }
    }
    try heard.wait("all") { $0.count == 5 }
    try eventually("all have ended") { try pair.files("claimed") == [] }
    for number in [1, 2] {
      let expected = [Handed(number), Handed(number, 2)]
      #expect(heard.all.filter { $0.number == number } == expected)
    }
    receiving.stop()
  }

  /// Also a message without strong references, because a weak reference may still read it.
  @Test(.blocking) func aMessageBecomesNoOther() throws {
    struct Weak: @unchecked Sendable {  // why: only looked at when all is over.
      weak var message: Message?
    }
    let pair = try Pair()
    let wrong = Heard<Int>()
    let places = Heard<Int>()
    let last = Monitor<(Weak, Int)?>(nil)
    let receiving = try pair.watch.receive { message in
      let before = last.withLock { last in
        defer { last = (Weak(message: message), message.batchIndex) }
        return last
      }
      if let before, let old = before.0.message, old.batchIndex != before.1 {
        wrong.add(old.batchIndex)
      }
      places.add(message.batchIndex)
    }
    try pair.phone.send(contentsOf: Array(0..<64), .quick())
    try places.wait("all") { $0.count == 64 }
    #expect(wrong.all == [])
    receiving.stop()
  }

  /// A claimed message that waits for a queue is requeued before the next receiver starts.
  @Test(.blocking, arguments: [false, true]) func whoeverIsStoppedLetsNobodyOvertake(
    _ isBatch: Bool
  ) throws {
    let pair = try Pair()
    let queue = DispatchQueue(label: "slow")
    queue.suspend()
    let heard = Heard<Handed>()
    let first = try pair.watch.receive(on: queue) { heard.add(try Handed($0)) }
    if isBatch {
      try pair.phone.send(contentsOf: [1, 2, 3], .quick())
    } else {
      try pair.send([1, 2, 3])
    }
    try eventually("one waits for the queue") { try pair.files("claimed").count == 1 }
    let end = Monitor(false)
    let stopper = try Thread("stopper") {
      first.stop()
      end.signal { $0 = true }
    }
    let hasStopped = end.wait(until: .now + patience) { $0 ? true : nil } == true
    #expect(hasStopped, "it waits for a queue that runs nothing")
    if !hasStopped { queue.resume() }
    stopper.join()
    guard hasStopped else { return }
    let second = try pair.watch.receive { heard.add(try Handed($0)) }
    try heard.wait("all") { $0.count == 3 }
    queue.resume()
    queue.sync {}
    second.stop()
    #expect(heard.all == [1, 2, 3].map { Handed($0) })
  }

  /// The handler throws because its receiver was stopped: a part of its work may be done.
  @Test(.blocking, arguments: [1, 2]) func whatAStoppedHandlerGivesBackIsMarked(
    _ count: Int
  ) throws {
    let pair = try Pair()
    try pair.phone.send(contentsOf: Array(1...count), .quick())
    let begun = Heard<Handed>()
    let own = Monitor<Subscription?>(nil)
    let first = try pair.watch.receive { message in
      begun.add(try Handed(message))
      own.wait(until: .now + patience) { $0 }?.stop()
      throw Refusal()
    }
    own.signal { $0 = first }
    defer { own.withLock { $0 = nil } }
    try begun.wait("the first") { $0.count == 1 }
    first.stop()
    let heard = Heard<Handed>()
    let second = try pair.watch.note(heard)
    try heard.wait("all") { $0.count == count }
    second.stop()
    #expect(begun.all == [Handed(1)])
    #expect(heard.all == (1...count).map { Handed($0, 1, marked: $0 == 1) })
  }

  /// The receivers are stopped at arbitrary moments.
  @Test(.blocking, arguments: [false, true]) func receiversThatFollowEachOtherKeepTheOrder(
    onQueue isOnQueue: Bool
  ) throws {
    let pair = try Pair()
    let queue = isOnQueue ? DispatchQueue(label: "own") : nil
    let heard = Heard<Handed>()
    let count = 300
    for number in 1...count {
      let receiving = try pair.watch.receive(on: queue) { heard.add(try Handed($0)) }
      try pair.phone.send(number, .quick())
      receiving.stop()
    }
    let receiving = try pair.watch.receive(on: queue) { heard.add(try Handed($0)) }
    try heard.wait("all") { $0.count == count }
    receiving.stop()
    #expect(heard.all == (1...count).map { Handed($0) })
  }

  /// A requeued message has not been handed out: it is redelivered, as often as needed, as the same
  /// attempt.
  @Test(.blocking, arguments: [1, 2]) func whatIsPutBackIsNoAttempt(_ count: Int) throws {
    let pair = try Pair { $0.mailbox.attempts = 2 }
    try pair.phone.send(contentsOf: Array(1...count), .quick())
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      let handed = try Handed(message)
      let before = heard.all.count { $0 == handed }
      heard.add(handed)
      if before < 20 { message.requeue(after: .microseconds(before % 2 * 200)) }
    }
    try heard.wait("all") { $0.count == 21 * count }
    try eventually("all have ended") { try pair.files("claimed") == [] }
    #expect(heard.all.allSatisfy { $0.attempt == 1 && !$0.isMarked })
    #expect(try pair.files("dead") == [])
    receiving.stop()
  }

  @Test(.blocking) func aMessageThatIsKeptStaysWhatItWas() throws {
    let pair = try Pair()
    let places = Heard<Int>()
    let kept = Monitor<[Message]>([])
    let receiving = try pair.watch.receive { message in
      if message.batchIndex % 3 == 0 { kept.withLock { $0.append(message) } }
      places.add(message.batchIndex)
    }
    try pair.phone.send(contentsOf: Array(0..<64), .quick())
    try places.wait("all") { $0.count == 64 }
    try eventually("the file has ended") { try pair.files("claimed") == [] }
    #expect(places.all == Array(0..<64))
    let messages = kept.withLock { $0 }
    #expect(messages.map(\.batchIndex) == Array(stride(from: 0, to: 64, by: 3)))
    for message in messages {
      #expect(try message.value(as: Int.self) == message.batchIndex)
      #expect(message.attempt == 1)
    }
    receiving.stop()
  }

  @Test func theReasonOfAFailureIsTold() async throws {
    let pair = try Pair { $0.mailbox.attempts = 2 }
    let sent = try pair.send([1])[0]
    let receiving = try pair.watch.receive(acknowledging: .explicit) { message in
      try message.fail("no seats left")
    }
    #expect(
      try await sent.waitForStatus(within: patience) == .deadLettered(reason: "no seats left"))
    let error = try await failure { try await sent.waitUntilDelivered() }
    #expect(error.code == .deadLettered)
    #expect(error.reason == "no seats left")
    #expect(try pair.files("dead").count == 2, "the letter and the reason")
    receiving.stop()
  }

  @Test(.blocking) func stoppedInsideTheClosure() throws {
    let pair = try Pair()
    try pair.send(1...3)
    let heard = Heard<Handed>()
    let own = Monitor<Subscription?>(nil)
    let receiving = try pair.watch.receive { message in
      heard.add(try Handed(message))
      let receiving = own.wait(until: .now + patience) { $0 }
      receiving?.stop()
    }
    own.signal { $0 = receiving }
    try heard.wait("the first") { $0.count == 1 }
    let other = Heard<Handed>()
    let next = try pair.watch.note(other)
    try other.wait("the rest") { $0.count == 2 }
    #expect(other.all == [Handed(2), Handed(3)])
    #expect(heard.all == [Handed(1)])
    next.stop()
  }

  /// A receiver that has passed its turn on continues with the rest, however long the other one
  /// takes.
  @Test(.blocking) func oneThatIsSlowDoesNotKeepTheOthersFromReceiving() throws {
    // The moments at which a receiver lets the other go first are a matter of chance.
    for _ in 0..<10 { try receiveBesideOneThatIsSlow() }
  }

  private func receiveBesideOneThatIsSlow() throws {
    let pair = try Pair()
    let (quick, slow) = (Heard<Handed>(), Heard<Handed>())
    let isOver = Monitor(false)
    let one = try pair.watch.note(quick)
    let other = try pair.watch.receive { message in
      slow.add(try Handed(message))
      _ = isOver.wait(until: .now + patience) { $0 ? true : nil }
    }
    var sent = 0
    do {
      try eventually("the slow one has one") {
        sent += 1
        try pair.send([sent])
        return slow.count == 1
      }
    } catch {
      let state = pair.watch.mailbox.state.withLock { state in
        "busy: \(state.receivers.mapValues(\.isBusy)), \("\(state.machine)".prefix(4000))"
      }
      Issue.record("of \(sent) the quick one has \(quick.count); \(state)")
      throw error
    }
    try pair.send(sent + 1...sent + 20)
    try quick.wait("all the others") { $0.count == sent + 19 }
    #expect(slow.count == 1)
    isOver.signal { $0 = true }
    one.stop()
    other.stop()
  }

  @Test(.blocking) func stopWaitsForTheCallUnderWay() throws {
    let pair = try Pair()
    try pair.phone.send(contentsOf: [1, 2, 3], .quick())
    let heard = Heard<Handed>()
    let (inside, stopping) = (Gate(), Heard<String>())
    let receiving = try pair.watch.receive { message in
      inside.pass()
      heard.add(try Handed(message))
      stopping.add("handled")
    }
    try inside.waitForSomebody()
    let stopper = try Thread("stopper") {
      stopping.add("stopping")
      receiving.stop()
      stopping.add("stopped")
    }
    try stopping.wait("it stops") { $0.count == 1 }
    inside.open()
    stopper.join()
    #expect(stopping.all.last == "stopped")
    let before = heard.count
    let other = Heard<Handed>()
    let next = try pair.watch.note(other)
    try other.wait("the rest of the batch") { $0.count == 3 - before }
    #expect(heard.count == before, "nothing came after stop had returned")
    #expect((heard.all + other.all) == [1, 2, 3].map { Handed($0) }, "nor twice, nor marked")
    next.stop()
  }

  @Test(.blocking) func stoppedOnItsOwnSerialQueue() throws {
    let pair = try Pair()
    try pair.send(1...3)
    let queue = DispatchQueue(label: "mail")
    let heard = Heard<Handed>()
    let busy = Gate()
    queue.async { busy.pass() }
    let receiving = try pair.watch.receive(on: queue) { heard.add(try Handed($0)) }
    // The queue is busy, so the first message waits; then the queue itself stops the receiver.
    try eventually("a message is in hand") { try pair.files("claimed") != [] }
    let stopped = Heard<Int>()
    queue.async {
      receiving.stop()
      stopped.add(heard.count)
    }
    busy.open()
    try stopped.wait("it is stopped") { $0.count == 1 }
    let other = Heard<Handed>()
    let next = try pair.watch.note(other)
    // The message that waited for the queue is returned when the queue reaches its call.
    try other.wait("the rest") { $0.count == 3 - stopped.all[0] }
    #expect(heard.count == stopped.all[0])
    let handed = (heard.all + other.all).sorted { $0.number < $1.number }
    #expect(handed == [1, 2, 3].map { Handed($0) })
    next.stop()
  }

  @Test func aHandlerThatThrowsSupersededHasFailed() async throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let sent = try pair.send([1])[0]
    let receiving = try pair.watch.receive { message in
      // An update inside the handler may throw this error.
      throw WormholeError(.superseded, "update channel", "speed", because: "it took too long")
    }
    guard case .deadLettered(let reason) = try await sent.waitForStatus(within: patience) else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    #expect(reason.contains("speed"))
    receiving.stop()
  }

  // MARK: Sequences

  @Test func brokenOutOfInTheMiddleOfABatch() async throws {
    let pair = try Pair()
    try await pair.phone.send(contentsOf: [1, 2, 3, 4], .quick())
    try pair.send([5])
    var heard: [Handed] = []
    for try await message in pair.watch.deliveries {
      heard.append(try Handed(message))
      try message.acknowledge()
      if heard.count == 2 { break }
    }
    for try await message in pair.watch.deliveries {
      heard.append(try Handed(message))
      try message.acknowledge()
      if heard.count == 5 { break }
    }
    #expect(heard == [1, 2, 3, 4, 5].map { Handed($0) })
    #expect(try pair.files("claimed") == [])
  }

  @Test func cancelledInTheMiddleOfABatch() async throws {
    let pair = try Pair()
    try await pair.phone.send(contentsOf: [1, 2, 3], .quick())
    let heard = Heard<Handed>()
    let watch = pair.watch
    let first = Task {
      for try await message in watch.deliveries {
        heard.add(try Handed(message))
        try message.acknowledge()
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    try await first.value
    #expect(heard.all == [Handed(1)])
    let receiving = try pair.watch.note(heard)
    try await heard.comes("the rest") { $0.count == 3 }
    #expect(heard.all == [1, 2, 3].map { Handed($0) })
    receiving.stop()
  }

  @Test func cancelledWhileItWaits() async throws {
    let pair = try Pair()
    let watch = pair.watch
    for number in 1...30 {
      let waiting = Task { () -> [Handed] in
        var heard: [Handed] = []
        for try await message in watch.deliveries {
          heard.append(try Handed(message))
          try message.acknowledge()
        }
        return heard
      }
      // The cancellation meets the claim now here, now there.
      let sending = try Thread("sending") { _ = try? pair.send([number]) }
      for _ in 0..<(number * 37 % 50) { Processes.yield() }
      waiting.cancel()
      sending.join()
      var heard = try await waiting.value
      if heard.isEmpty {
        for try await message in pair.watch.messages() {
          heard.append(try Handed(message))
          try message.acknowledge()
          break
        }
      }
      #expect(heard == [Handed(number)], "neither lost nor counted as an attempt")
    }
  }

  @Test func automaticAcknowledgementInALoop() async throws {
    let pair = try Pair()
    let sent = try pair.send(1...3)
    var places: [Sent.State] = []
    for try await message in pair.watch.messages() {
      let number = try message.value(as: Int.self)
      places.append(try sent[number - 1].state)
      if number > 1 { #expect(try sent[number - 2].state == .ended) }
      if number == 3 { break }
    }
    #expect(places == [.claimed, .claimed, .claimed])
  }

  @Test func aLoopThatForgetsAMessageGetsItAgain() async throws {
    let pair = try Pair { $0.mailbox.retryDelay = .milliseconds(1) }
    try pair.send([1])
    var heard: [Handed] = []
    for try await message in pair.watch.deliveries {
      heard.append(try Handed(message))
      if heard.count == 3 {
        try message.acknowledge()
        break
      }
    }
    #expect(heard == [Handed(1), Handed(1, 2), Handed(1, 3)])
  }
}
