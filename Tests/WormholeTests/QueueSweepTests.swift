import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A worker of a queue, killed, suspended and failed at its system calls: at a few calls, chosen at
/// random; at all calls in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .notSanitized("a process for each system call"))
struct QueueSweepTests {
  private let seed = TestRun.seed
  private static let isLong = TestRun.isLong

  enum Operation: String, CaseIterable, Sendable {
    /// All messages are new.
    case work
    /// The first message was claimed by a worker that was killed.
    case takeOver
  }

  /// One run in a container of its own: message 1 is free and has a file, 2 and 3 have one key, and
  /// 4 is delayed until it is due at once.
  private struct Run {
    let meeting: Meeting
    let queue: Queue<Int>
    let acknowledged = Heard<Int>()
    let begun = Heard<Handed>()

    init(_ operation: Operation) throws {
      meeting = try Meeting()
      try meeting.folder.write("", to: "log")
      queue = meeting.container.queue("jobs")
      try meeting.folder.write("content", to: "file")
      try queue.send(1, file: meeting.folder.path + "/file", .quick())
      for number in 2...3 { try queue.send(number, .quick { $0.orderingKey = "a" }) }
      try queue.send(4, .quick { $0.delay = .milliseconds(1) })
      guard operation == .takeOver else { return }
      _ = try start(killsAt: 1).outcome()
    }

    func start(
      _ faults: String = "", deadline: Int = 30_000, killsAt: Int? = nil, trace: Bool = false
    ) throws -> Running {
      var environment = ["WORMHOLE_FAULTS=\(faults)"]
      if trace { environment.append("WORMHOLE_FAULT_TRACE=\(meeting.folder.path)/trace") }
      return try Running(
        .work(
          meeting.path, "jobs", log: meeting.folder.path + "/log", concurrency: 1,
          deadline: deadline, killsAt: killsAt, times: 4),
        environment: environment)
    }

    /// Another worker, in this process.
    func work() throws -> Subscription {
      let (acknowledged, begun) = (acknowledged, begun)
      return try meeting.another().queue("jobs", of: Int.self).work { number, message in
        begun.add(try Handed(message))
        try message.acknowledge()
        acknowledged.add(number)
      }
    }

    func lines() throws -> [[Substring]] {
      try meeting.folder.read("log").split(separator: "\n").map { $0.split(separator: " ") }
    }
  }

  /// A sample of the calls that a worker makes.
  private func points(
    _ operation: Operation, _ random: inout SeededRandom
  ) throws -> [Int] {
    let run = try Run(operation)
    _ = try run.start(trace: true).outcome()
    #expect(try run.queue.messages.isEmpty)
    let count = try run.meeting.folder.read("trace").split(separator: "\n").count
    let wanted = Self.isLong ? count : 3
    print("swept \(min(wanted, count)) of \(count) fault points")
    // The first call, which opens the log, belongs to the test.
    return (2...count).shuffled(using: &random).prefix(wanted).sorted()
  }

  @Test(arguments: Operation.allCases)
  func killed(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(operation, &random) {
      let run = try Run(operation)
      let rule = "any@\(point):before:kill"
      _ = try run.start(rule).outcome()
      try finish(run, "\(operation) \(rule) seed \(seed)")
    }
  }

  /// Another worker goes on, and the late one harms nothing.
  @Test(arguments: Operation.allCases)
  func stopped(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(operation, &random) {
      let place = "\(operation) any@\(point):before:stop seed \(seed)"
      let run = try Run(operation)
      let peer = try run.start("any@\(point):before:stop", deadline: 400)
      try eventually("\(place): stops or ends") {
        try peer.hasEnded || Processes.isStopped(peer.child.process)
      }
      let working = try run.work()
      try eventually("\(place): all is done") { try run.queue.messages.isEmpty }
      try? peer.child.send(.go)
      // A message sent now is one of the two's.
      try run.queue.send(5, .quick())
      try eventually("\(place): the next one is done") { try run.queue.messages.isEmpty }
      working.stop()
      try? peer.child.send(.kill)
      _ = try peer.outcome()
      try check(run, place, isLate: true)
    }
  }

  @Test(arguments: Operation.allCases)
  func failed(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(operation, &random) {
      let kinds = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS", "ENOMEM"]
      for kind in kinds.shuffled(using: &random).prefix(1) {
        let rule = "any@\(point):before:fail=\(kind)"
        let place = "\(operation) \(rule) seed \(seed)"
        let run = try Run(operation)
        let peer = try run.start(rule)
        // What is refused is tried again after a second.
        try? eventually("it ends", within: .seconds(3)) { peer.hasEnded }
        if !peer.hasEnded { try peer.child.send(.kill) }
        let outcome = try peer.outcome()
        #expect(
          [.exited(0), .exited(70), .signalled(9)].contains(outcome.status),
          "\(place): \(outcome.errors)")
        if outcome.status == .exited(70) {
          #expect(outcome.errors.contains("cannot "), "\(place): \(outcome.errors)")
        }
        try finish(run, place)
      }
    }
  }

  private func finish(_ run: Run, _ place: String) throws {
    let working = try run.work()
    try eventually("\(place): all is done") { try run.queue.messages.isEmpty }
    working.stop()
    try check(run, place)
  }

  /// Each message was handled, redelivered only with its mark, acknowledged once, and in the order
  /// of its key; and nothing is left over.
  ///
  /// - Parameter isLate: whether a suspended worker may note its first attempt after the second.
  private func check(_ run: Run, _ place: String, isLate: Bool = false) throws {
    let lines = try run.lines()
    let first = lines.filter { $0.count == 3 }.compactMap { Int($0[0]) }
    let done = lines.filter { $0.last == "done" }.compactMap { Int($0[0]) }
    let second = run.begun.all
    #expect(Set(first + second.map(\.number)).isSuperset(of: 1...4), "\(place)")
    #expect(try run.queue.deadLetters.isEmpty, "\(place)")
    let twice = Set(done).intersection(run.acknowledged.all)
    #expect(twice.isEmpty && done.count == Set(done).count, "\(twice) \(done): \(place)")
    if !isLate {
      for one in second where first.contains(one.number) {
        #expect(one.isMarked, "\(one): \(place)")
      }
      let ofKey = (first + second.map(\.number)).filter { [2, 3].contains($0) }
      #expect(ofKey == ofKey.sorted(), "\(ofKey): \(place)")
    }
    _ = try run.meeting.another()
    #expect(try run.meeting.names("staging") == [], "\(place)")
    try eventually("\(place): no worker is left") {
      // A dead worker's directory is removed by the next one.
      let working = try run.queue.work { _, _ in }
      working.stop()
      return try run.meeting.names("queues/jobs/workers") == []
    }
    #expect(try run.meeting.names("queues/jobs/claimed") == [], "\(place)")
    #expect(try run.meeting.names("queues/jobs/files") == ["room"], "\(place)")
  }
}
