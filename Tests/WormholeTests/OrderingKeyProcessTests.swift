import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The order of keys under kills, and when a worker is suspended in the middle of a claim.
@Suite(.blocking, .notSanitized("several processes at once")) struct OrderingKeyProcessTests {
  private let meeting: Meeting
  private let queue: Queue<Int>

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    queue = meeting.container.queue("jobs")
    try meeting.folder.write("", to: "log")
  }

  private func work(killsAt: Int? = nil, faults: String = "") throws -> Running {
    try Running(
      .work(
        meeting.path, "jobs", log: meeting.folder.path + "/log", deadline: 30_000,
        killsAt: killsAt),
      environment: ["WORMHOLE_FAULTS=\(faults)"])
  }

  /// The numbers whose handling began, in order.
  private func begun() throws -> [Int] {
    try meeting.folder.read("log").split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ")
      return parts.count == 3 ? Int(parts[0]) : nil
    }
  }

  private func done() throws -> Set<Int> {
    Set(
      try meeting.folder.read("log").split(separator: "\n").compactMap { line in
        line.hasSuffix(" done") ? Int(line.dropLast(5)) : nil
      })
  }

  @Test func killedWorkersKeepTheOrderOfEachKey() throws {
    var random = SeededRandom(seed: TestRun.seed)
    var workers = try (0..<3).map { _ in try work() }
    var count = 0
    for _ in 1...(TestRun.isLong ? 150 : 12) {
      for _ in 1...100 {
        count += 1
        try queue.send(count, .quick { $0.orderingKey = "key \(count % 7)" })
      }
      let index = Int.random(in: 0..<3, using: &random)
      try workers[index].child.send(.kill)
      _ = try workers[index].outcome()
      workers[index] = try work()
    }
    try eventually("all are settled, seed \(TestRun.seed)") { try queue.messages.isEmpty }
    for worker in workers { try worker.child.send(.kill) }
    let begun = try begun()
    for key in 0..<7 {
      let ofKey = begun.filter { $0 % 7 == key }
      #expect(ofKey == ofKey.sorted(), "key \(key), seed \(TestRun.seed)")
    }
    let dead = Set(try queue.deadLetters.compactMap(\.attempts)).isSubset(of: [5])
    #expect(dead && Set(begun) == Set(1...count), "seed \(TestRun.seed)")
  }

  /// A worker that has looked, and is suspended before its claim, claims too late: it finds the
  /// other one's message, and returns its own.
  @Test func aClaimThatIsTooLateIsReturned() throws {
    try queue.send(2, .quick { $0.orderingKey = "a" })
    let late = try work(faults: "rename~/claimed/:before:stop")
    try eventually("it is suspended") { try Processes.isStopped(late.child.process) }
    // An urgent message goes first.
    try queue.send(
      1,
      .quick {
        $0.orderingKey = "a"
        $0.isUrgent = true
      })
    let (gate, heard) = (Gate(), Heard<Int>())
    let working = try meeting.another().queue("jobs", of: Int.self).work { job, _ in
      heard.add(job)
      while job == 1, gate.isClosed { await Task.yield() }
    }
    try heard.wait("the urgent one") { $0 == [1] }
    try late.child.send(.go)
    // The claim was returned to the other messages that were claimed before.
    #expect(throws: Never.self) {
      try eventually("it is returned") { try !meeting.names("queues/jobs/claimed").isEmpty }
    }
    #expect(try begun() == [])
    gate.open()
    try eventually("the second is handled") { try heard.all == [1, 2] || done() == [2] }
    working.stop()
    try late.child.send(.kill)
  }

  /// One removal or rename decides between a cancellation and the next claim of a message that was
  /// claimed in vain before.
  @Test func aCancellationLosesAgainstTheNextClaim() throws {
    let sent = try queue.send(1, .quick { $0.orderingKey = "a" })
    let home = try meeting.container.storage.member("jobs", in: .queues)
    let file = try #require(try meeting.names("queues/jobs/inbox").first)
    let name = try #require(MessageName(file))
    let returned = ClaimedName(name, attempt: 0, claim: 1).text
    #expect(try home.move(name.text, from: .inbox, .claimed, as: returned))
    let (pause, outcome) = (FaultPause(), Heard<Cancellation?>())
    let cancelling = try Thread("cancelling") {
      FaultPoints.with([FaultRule(.unlink, path: returned, .pause(pause))]) {
        outcome.add(try? sent.cancel())
      }
    }
    try eventually("it is about to remove the message") { pause.isReached }
    let heard = Heard<Int>()
    let working = try meeting.another().queue("jobs", of: Int.self).work { job, _ in
      heard.add(job)
    }
    try heard.wait("the message") { $0 == [1] }
    pause.open()
    cancelling.join()
    #expect(outcome.all == [.tooLate])
    working.stop()
  }
}
