import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

/// Messages of a queue that are in order per key, among several workers.
@Suite struct OrderingKeyTests {
  private let meeting: Meeting
  private let queue: Queue<Int>

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    queue = meeting.container.queue("jobs")
  }

  private func other() throws -> Queue<Int> { try meeting.another().queue("jobs") }

  private func send(_ number: Int, _ key: String, isUrgent: Bool = false) async throws {
    try await queue.send(
      number,
      .quick {
        $0.orderingKey = key
        $0.isUrgent = isUrgent
      })
  }

  /// The names that a directory of the queue contains.
  private func names(_ part: String) throws -> [String] {
    try meeting.names("queues/jobs/\(part)")
  }

  /// What six handlers of three workers do with the messages of four keys, whose every third
  /// message fails at first.
  private final class Log: Sendable {
    struct State {
      var inUse: Set<Int> = []
      var failed: Set<Int> = []
      var done: [Int: [Int]] = [:]
      var problems: [String] = []
    }
    let state = Monitor(State())

    func handle(_ job: Int) async throws {
      let key = job % 4
      state.withLock { state in
        if !state.inUse.insert(key).inserted { state.problems.append("\(job) is not alone") }
      }
      for _ in 0..<3 { await Task.yield() }
      let fails = state.withLock { state in
        state.inUse.remove(key)
        if job % 3 == 0, state.failed.insert(job).inserted { return true }
        state.done[key, default: []].append(job)
        return false
      }
      if fails { throw Refused() }
    }
  }

  @Test func theMessagesOfAKeyAreHandledOneAfterAnother() async throws {
    let log = Log()
    for number in 1...60 { try await send(number, "key \(number % 4)") }
    var working: [Subscription] = []
    for _ in 0..<3 {
      working.append(try other().work(concurrency: 2) { job, _ in try await log.handle(job) })
    }
    for number in 61...120 { try await send(number, "key \(number % 4)") }
    try await WormholeTesting.eventually("all are handled", within: patience) {
      log.state.withLock { $0.done.values.reduce(0) { $0 + $1.count } } >= 120
    }
    for one in working { one.stop() }
    for one in working { try await one.finished() }
    let state = log.state.withLock { $0 }
    #expect(state.problems == [])
    for key in 0..<4 { #expect(state.done[key] == (1...120).filter { $0 % 4 == key }) }
    #expect(try queue.messages.isEmpty && queue.deadLetters.isEmpty)
  }

  @Test func aKeyInUseHoldsUpNoOther() async throws {
    let gate = Gate()
    let heard = Heard<Int>()
    try await send(1, "a")
    let first = try other().work { job, _ in
      heard.add(job)
      while job == 1, gate.isClosed { await Task.yield() }
    }
    try await heard.comes("the first") { $0 == [1] }
    // The second worker finds a message of the key in use first.
    try await send(2, "a")
    try await send(3, "b")
    try await queue.send(4, .quick())
    let second = try other().work { job, _ in heard.add(job) }
    try await heard.comes("the others") { $0 == [1, 3, 4] }
    // It has not even tried to claim the message.
    #expect(try names("inbox").count == 1 && names("claimed") == [])
    gate.open()
    try await heard.comes("the second of the key") { $0 == [1, 3, 4, 2] }
    first.stop()
    second.stop()
  }

  /// More messages of one key than a worker remembers hide no message of another one.
  @Test func manyMessagesOfAKeyHideNoOther() async throws {
    let (gate, heard) = (Gate(), Heard<Int>())
    try await queue.send(
      contentsOf: Array(1...200), .quick { $0.orderingKey = "a" })
    try await send(1000, "b")
    let working = try queue.work(concurrency: 2) { job, _ in
      heard.add(job)
      while job == 1, gate.isClosed { await Task.yield() }
    }
    try await heard.comes("both") { Set($0) == [1, 1000] }
    gate.open()
    try await heard.comes("all") { $0.count == 201 }
    #expect(heard.all.filter { $0 < 1000 } == Array(1...200))
    working.stop()
  }

  @Test func aFailedMessageIsTheFirstOfItsKeyAgain() async throws {
    let heard = Heard<Handed>()
    for number in 1...2 { try await send(number, "a") }
    var working: [Subscription] = []
    for _ in 0..<2 {
      working.append(
        try other().work { job, message in
          heard.add(try Handed(message))
          if job == 1, message.attempt < 3 { throw Refused() }
        })
    }
    try await heard.comes("all") { $0.count == 4 }
    #expect(heard.all == [Handed(1), Handed(1, 2), Handed(1, 3), Handed(2)])
    for one in working { one.stop() }
  }

  @Test func aDeadLetterHoldsUpItsKeyNoLonger() async throws {
    let heard = Heard<Int>()
    for number in 1...2 { try await send(number, "a") }
    let working = try queue.work { job, _ in
      heard.add(job)
      if job == 1 { throw Refused() }
    }
    try await heard.comes("all") { $0 == [1, 1, 1, 1, 1, 2] }
    working.stop()
    #expect(try queue.deadLetters.count == 1)
    let again = Heard<String?>()
    #expect(try queue.retry(id: #require(queue.deadLetters.first).id))
    let second = try queue.work { _, message in again.add(message.orderingKey) }
    try await again.comes("the retried one") { $0 == ["a"] }
    second.stop()
  }

  @Test func theMessageOfAHungWorkerIsTheFirstOfItsKey() async throws {
    for number in 1...2 { try await send(number, "a") }
    var hung = queue.deliveries(handlingDeadline: .seconds(1)).makeAsyncIterator()
    let first = try #require(try await hung.next(isolation: nil))
    let heard = Heard<Handed>()
    let working = try other().work { _, message in heard.add(try Handed(message)) }
    try await heard.comes("both") { $0 == [Handed(1, 2), Handed(2)] }
    #expect(throws: WormholeError.self) { try first.acknowledge() }
    working.stop()
  }

  /// Sends a message, and lets a worker claim it and return it as if never claimed.
  private func sendAndRequeue() async throws -> Sent {
    let sent = try await queue.send(1, .quick { $0.orderingKey = "a" })
    var loop = queue.deliveries().makeAsyncIterator()
    try #require(try await loop.next(isolation: nil)).requeue()
    #expect(try names("inbox") == [] && names("claimed").count == 1)
    #expect(try sent.state == .waiting)
    return sent
  }

  /// No handler had the message: it can be cancelled, as if it were in the inbox.
  @Test func aRequeuedMessageIsCancelledLikeAWaitingOne() async throws {
    let first = try await sendAndRequeue()
    #expect(try first.cancel() == .cancelled)
    #expect(try names("claimed") == [] && queue.messages.isEmpty)
    let second = try await sendAndRequeue()
    #expect(try queue.cancel(id: second.id) == .cancelled)
    #expect(try names("claimed") == [] && queue.messages.isEmpty)
    let third = try await sendAndRequeue()
    #expect(try queue.purge(kind: third.kind) == 1)
    #expect(try names("claimed") == [] && queue.messages.isEmpty)
  }

  /// A message that goes back to the inbox would be overlooked by a worker that has listed it.
  @Test func aRequeuedMessageStaysAmongTheClaimedOnes() async throws {
    try await send(1, "a")
    do {
      var loop = queue.deliveries().makeAsyncIterator()
      let message = try #require(try await loop.next(isolation: nil))
      #expect(message.orderingKey == "a")
      message.requeue()
    }
    #expect(try names("inbox") == [] && names("claimed").count == 1)
    let seen = try queue.messages
    #expect(seen.map(\.orderingKey) == ["a"] && seen.map(\.attempt) == [0])
    #expect(seen.map(\.state) == [.waiting])
    let heard = Heard<Handed>()
    let working = try other().work { _, message in heard.add(try Handed(message)) }
    try await heard.comes("it") { $0 == [Handed(1)] }
    working.stop()
  }

  /// The only difference for a member is that its messages show the key.
  @Test func membersIgnoreKeys() async throws {
    let watch = try await meeting.container.join(as: "watch")
    try await meeting.container.peer("watch").send(1, .quick { $0.orderingKey = "a" })
    let heard = Heard<String?>()
    let receiving = try watch.receive { message in heard.add(message.orderingKey) }
    try await heard.comes("it") { $0 == ["a"] }
    receiving.stop()
  }

  /// Programs of all versions and languages compute the digits of a key as *The directory* states.
  @Test func theNameOfAMessageContainsTheDigitsOfItsKey() async throws {
    for (key, digits) in [
      ("a", "dc4c860143ef"), ("foobar", "4171f739e27c"), ("\u{fc}", "0a07b7180d28"),
    ] {
      try await send(1, key)
      #expect(try names("inbox").count { $0.contains("~\(digits)") } == 1, "\(key)")
    }
  }

  @Test func keysAtTheirLimits() async throws {
    for key in ["", String(repeating: "k", count: 257)] {
      let error = #expect(throws: WormholeError.self) {
        try queue.send(1, .quick { $0.orderingKey = key })
      }
      #expect(error?.code == .invalidName)
    }
    // The longest names leave no space for a key, which is said before anything is sent.
    let name = String(repeating: "n", count: 180)
    let sender = try await meeting.container.join(as: name)
    let jobs = sender.queue("jobs", of: Int.self)
    let long = SendOptions.quick {
      $0.orderingKey = String(repeating: "k", count: 256)
      $0.id = String(repeating: "i", count: 36)
    }
    let error = #expect(throws: WormholeError.self) { try jobs.send(1, long) }
    #expect(error?.code == .invalidName && error?.hint?.contains("shorter ID") == true)
    let sent = try await jobs.send(1, .quick { $0.orderingKey = long.orderingKey })
    let working = try queue.work { _, _ in }
    #expect(try await sent.waitForStatus(within: .seconds(20)) == .delivered)
    working.stop()
    #expect(try queue.messages.isEmpty)
    #expect(try names("files") == ["room"])
  }
}

private struct Refused: Error {}
