import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing

/// Every operation killed, stopped and failed at its system calls: a seeded tenth of them, all of
/// them in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.serialized, .blocking) struct FaultSweepTests {
  private let seed = TestRun.seed

  /// P2, P3, P7: whoever is killed, wherever, takes nothing along and leaves nothing behind.
  @Test(arguments: SweptOperation.all)
  func killed(_ operation: SweptOperation) throws {
    var random = SeededRandom(seed: seed)
    let count = try SweptRun.countCalls(of: operation)
    var rules = SweptRun.points(count, &random).map { "any@\($0):before:kill" }
    rules.append("any@\(count):after:kill")
    for rule in rules {
      let run = try SweptRun(operation)
      let outcome = try run.start(faults: rule).outcome()
      let number = try check(run, rule, wasAcknowledged: outcome.output != "")
      let sum = operation.before + operation.adds
      #expect(number == operation.before || number == sum, "\(operation) \(rule) seed \(seed)")
      if outcome.output != "" { #expect(number == sum, "\(operation) \(rule) seed \(seed)") }
    }
  }

  /// Looks at a container after a disturbance: it opens, reads, changes, and nothing is left over.
  ///
  /// The number found at first.
  private func check(
    _ run: SweptRun, _ rule: String, wasAcknowledged: Bool
  ) throws -> Int {
    let container = try Container.open(run.path, options: .testing())
    let slot = try container.slot(.channels, "n")
    let number = try slot.number()
    #expect(try slot.add() == number + 1, "\(run.operation) \(rule) seed \(seed)")
    try run.letOthersEnd()
    #expect(
      try slot.add(0) == number + 1 + run.others.count, "\(run.operation) \(rule) seed \(seed)")
    _ = try Container.open(run.path, options: .testing())
    #expect(try run.leftovers() == [], "\(run.operation) \(rule) seed \(seed)")
    return number
  }

  /// P3: whoever is stopped, wherever, holds up nobody for longer than the lease, and when it goes
  /// on it overwrites nothing.
  @Test(arguments: SweptOperation.all)
  func stopped(_ operation: SweptOperation) throws {
    var random = SeededRandom(seed: seed)
    let count = try SweptRun.countCalls(of: operation)
    for point in SweptRun.points(count, &random) {
      let rule = "any@\(point):before:stop"
      // What others do to the machine may come between once; a lock that holds up does so always.
      var excess = try stop(operation, rule)
      for _ in 0..<2 where excess > .zero { excess = min(excess, try stop(operation, rule)) }
      #expect(excess <= .zero, "waited \(excess) too long: \(operation) \(rule) seed \(seed)")
    }
  }

  /// Stops the operation there, commits a hundred times, and lets it go on; answers by how much
  /// the longest wait was longer than it may be.
  private func stop(_ operation: SweptOperation, _ rule: String) throws -> Duration {
    let run = try SweptRun(operation)
    let peer = try run.start(faults: rule)
    try eventually("\(operation) \(rule) seed \(seed): stops or ends") {
      try peer.hasEnded || Processes.isStopped(peer.child.process)
    }
    let bystander = try Bystander()
    let longest = try commitAHundredTimes(run)
    let bound =
      ContainerOptions.testing().lease + .milliseconds(150) + bystander.allowance()
    _ = try peer.waitOrGo()
    try run.letOthersEnd()
    let slot = try Container.open(run.path, options: .testing()).slot(.channels, "n")
    let sum = operation.before + operation.adds + 100 + run.others.count
    #expect(try slot.number() == sum, "\(operation) \(rule) seed \(seed)")
    try slot.add()
    #expect(try run.leftovers() == [], "\(operation) \(rule) seed \(seed)")
    return longest - bound
  }

  /// The longest that any of a hundred updates took.
  private func commitAHundredTimes(_ run: SweptRun) throws -> Duration {
    // What is measured is the wait for the lock; how long a busy disk takes to sync is not.
    let peer = try Running(
      .acknowledge(run.path, "n", durability: .process, times: 100),
      environment: ["WORMHOLE_MUTANT=no-file-sync"])
    let outcome = try peer.outcome()
    try #require(outcome.status == .exited(0), "\(outcome.errors)")
    let took = outcome.output.split(separator: "\n").map { line in
      let numbers = line.split(separator: " ").compactMap { Int64($0) }
      return numbers[2] - numbers[1]
    }
    return .nanoseconds(try #require(took.max()))
  }

  /// P1, P2, P7: an error of the system, once or from then on, is told truthfully, damages nothing,
  /// and ends; afterwards everything works.
  @Test(arguments: SweptOperation.all)
  func failed(_ operation: SweptOperation) throws {
    var random = SeededRandom(seed: seed)
    let count = try SweptRun.countCalls(of: operation)
    let kinds = [
      "fail=ENOSPC", "fail=EIO", "fail=EMFILE", "fail=EACCES", "fail=EROFS", "fail=EINTR", "short",
    ]
    for point in SweptRun.points(count, &random) {
      for extent in ["", "+"] {
        let chosen = SweptRun.isLong ? kinds : [kinds.randomElement(using: &random)!]
        for kind in chosen { try fail(operation, "any@\(point)\(extent):before:\(kind)") }
      }
    }
  }

  private func fail(_ operation: SweptOperation, _ rule: String) throws {
    let run = try SweptRun(operation)
    let outcome = try run.start(faults: rule).outcome()
    let place: Comment = "\(operation) \(rule) seed \(seed): \(outcome.errors)"
    #expect(outcome.status == .exited(0) || outcome.status == .exited(70), place)
    let number = try check(run, rule, wasAcknowledged: outcome.status == .exited(0))
    let sum = operation.before + operation.adds
    switch outcome.status {
    case .exited(0): #expect(number == sum, place)
    default:
      #expect(outcome.errors.contains("cannot "), place)
      let wasDone = outcome.errors.contains("it is done, but")
      #expect(number == (wasDone ? sum : operation.before), place)
    }
  }
}
