import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Workers that are killed and suspended.
@Suite(.blocking, .notSanitized("many processes at once")) struct SharedQueueProcessTests {
  private let meeting: Meeting
  private let queue: Queue<Int>

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    queue = meeting.container.queue("jobs")
    try meeting.folder.write("", to: "log")
  }

  private func work(
    deadline: Int = 30_000, concurrency: Int = 2, killsAt: Int? = nil, stopsAt: Int? = nil,
    times: Int = .max
  ) throws -> Running {
    try Running(
      .work(
        meeting.path, "jobs", log: meeting.folder.path + "/log", concurrency: concurrency,
        deadline: deadline, killsAt: killsAt, stopsAt: stopsAt, times: times))
  }

  private func lines() throws -> [[String]] {
    try meeting.folder.read("log").split(separator: "\n").map {
      $0.split(separator: " ").map(String.init)
    }
  }

  private func done() throws -> [Int] {
    try lines().filter { $0.count == 2 && $0[1] == "done" }.compactMap { Int($0[0]) }
  }

  /// Fails the test if a redelivery is not marked.
  ///
  /// A worker that was suspended just before the first attempt may note it after the second one.
  private func checkMarks(_ place: String = "") throws {
    var unmarked: Set<String> = []
    for line in try lines() where line.count == 3 && line[2] != "true" {
      let isFirst = unmarked.insert(line[0]).inserted
      if !isFirst { Issue.record("\(line) is not marked \(place)") }
    }
  }

  @Test func aKilledWorkersMessagesComeBackAtOnce() throws {
    try queue.send(contentsOf: Array(1...20), .quick())
    let first = try work(concurrency: 1, killsAt: 3)
    _ = try first.outcome()
    let begin = Instant.now
    let second = try work()
    #expect(throws: Never.self) { try eventually("all are done") { try done().count == 20 } }
    #expect(Instant.now - begin < .seconds(20))
    #expect(Set(try done()) == Set(1...20))
    #expect(try lines().contains(["3", "2", "true"]))
    try checkMarks()
    try second.child.send(.kill)
  }

  /// The watch on its end tells the workers that wait.
  @Test func aWaitingWorkerTakesOverFromAKilledOne() throws {
    let first = try work(concurrency: 1, killsAt: 1)
    try isWorking(first)
    let second = try work(concurrency: 1, killsAt: 1)
    try isWorking(second)
    let third = try work()
    try isWorking(third)
    for number in 1...10 { try queue.send(number, .quick()) }
    // Whoever takes number 1 dies, but for the third.
    try eventually("all are done") { try Set(done()) == Set(1...10) }
    try checkMarks()
    try third.child.send(.kill)
  }

  private func isWorking(_ worker: Running) throws {
    try eventually("it works") { try worker.output.contains("working") }
  }

  @Test func aSuspendedWorkersMessageIsRedelivered() throws {
    try queue.send(contentsOf: Array(1...6), .quick())
    let first = try work(deadline: 300, concurrency: 1, stopsAt: 2)
    try eventually("it is suspended") { try Processes.isStopped(first.child.process) }
    let second = try work(deadline: 30_000)
    try eventually("all are done") { try done().count == 6 }
    #expect(try lines().contains(["2", "2", "true"]))
    try first.child.send(.go)
    try eventually("the late acknowledgement is refused") {
      try lines().contains(["2", "superseded"])
    }
    try checkMarks()
    try first.child.send(.kill)
    try second.child.send(.kill)
  }

  @Test func anOrderlyRestartMakesNoDeadLetter() throws {
    try queue.send(contentsOf: Array(1...120), .quick())
    var rounds = 0
    while try done().count < 120, rounds < 60 {
      rounds += 1
      let workers = [try work(times: 5), try work(times: 5)]
      for worker in workers {
        try eventually("it ends, or nothing is left") {
          try worker.hasEnded || done().count >= 120
        }
      }
    }
    #expect(try done().sorted() == Array(1...120))
    // Ended in order: no attempt counts, so no redelivery is marked.
    #expect(try lines().allSatisfy { $0.count == 2 || $0[1] == "1" })
    #expect(try queue.deadLetters.isEmpty)
  }

  /// Workers killed, suspended and restarted at random: each message is done, duplicates are
  /// marked.
  @Test func chaos() throws {
    var random = SeededRandom(seed: TestRun.seed)
    let count = TestRun.isLong ? 20_000 : 1500
    try queue.send(contentsOf: Array(1...count), .quick())
    var workers = try (0..<4).map { _ in try work(deadline: 400) }
    let deadline = Instant.now + .seconds(TestRun.isLong ? 600 : 90)
    while try Set(done()).count < count, Instant.now < deadline {
      let index = Int.random(in: 0..<4, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        try workers[index].child.send(.kill)
        _ = try workers[index].outcome()
        workers[index] = try work(deadline: 400)
      case 1:
        try? workers[index].child.send(.stop)
      default:
        for worker in workers { try? worker.child.send(.go) }
      }
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(60)) { _ in nil }
    }
    for worker in workers { try? worker.child.send(.go) }
    try eventually("all are settled, seed \(TestRun.seed)") { try queue.messages.isEmpty }
    let letters = try queue.deadLetters.count
    #expect(letters == 0, "seed \(TestRun.seed)")
    // Whoever is killed between the acknowledgement and its note has settled the message.
    let handled = Set(try lines().filter { $0.count == 3 }.compactMap { Int($0[0]) })
    #expect(handled == Set(1...count), "seed \(TestRun.seed)")
    try checkMarks("seed \(TestRun.seed)")
  }
}
