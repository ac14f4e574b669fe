import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Every operation killed, stopped and failed at its system calls: a seeded tenth of the calls, all
/// calls in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.serialized, .blocking, .notSanitized("a process for each system call"))
struct FaultSweepTests {
  private let seed = TestRun.seed

  /// P2, P3, P7: a process killed at any call takes nothing along and leaves nothing behind.
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

  /// Checks a container after a disturbance: it opens, reads, changes, and has no leftovers.
  ///
  /// Returns the number that the container held at first.
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

  /// P3: a process stopped at any call holds up no other process for longer than the lease.
  ///
  /// When it resumes, the process overwrites nothing.
  @Test(arguments: SweptOperation.all)
  func stopped(_ operation: SweptOperation) throws {
    var random = SeededRandom(seed: seed)
    let count = try SweptRun.countCalls(of: operation)
    for point in SweptRun.points(count, &random) {
      let rule = "any@\(point):before:stop"
      // Another load on the machine may cause one delay; a lock that delays, delays every time.
      var excess = try stop(operation, rule)
      for _ in 0..<2 where excess > .zero { excess = min(excess, try stop(operation, rule)) }
      #expect(excess <= .zero, "waited \(excess) too long: \(operation) \(rule) seed \(seed)")
    }
  }

  /// Stops the operation at the call, commits a hundred times, and resumes the operation.
  ///
  /// Returns by how much the longest wait was longer than allowed.
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
    // The measure is the wait for the lock, not the time for which a busy disk syncs.
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

  /// P1, P2, P7: an error of the system, once or from one call on, is reported truthfully, damages
  /// nothing, and ends; afterwards everything works.
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
      let wasDone = outcome.errors.contains("is done, but")
      #expect(number == (wasDone ? sum : operation.before), place)
    }
  }
}
