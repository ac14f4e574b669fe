import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Several threads, several instances on one directory, and children that a process starts inside
/// updates.
@Suite(.blocking) struct ThreadsAndForksTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest() }

  /// The same slot of another container on the same directory: to the lock, another process.
  private func another() throws -> Slot {
    try Container.open(container.path, options: .testing()).slot(.channels, "n")
  }

  @Test(arguments: [Durability.process, .power])
  func threadsOnSeveralSlotsLoseNothing(_ durability: Durability) throws {
    let containers = try [container, Container.open(container.path, options: .testing())]
    try together(8) { index in
      let container = containers[index % 2]
      for round in 0..<30 {
        let name = "slot \((index + round) % 3)"
        try container.slot(.channels, name).add(durability: durability)
      }
    }
    for number in 0..<3 {
      #expect(try container.slot(.channels, "slot \(number)").number() == 80)
    }
  }

  // MARK: Waits that end

  enum Queue: CaseIterable { case threads, processes }

  @Test(arguments: Queue.allCases)
  func aDeadlineEndsTheWait(_ queue: Queue) throws {
    try giveUp(in: queue, .timedOut) { Patience(until: $0) }
  }

  @Test(arguments: Queue.allCases)
  func cancellingEndsTheWait(_ queue: Queue) throws {
    try giveUp(in: queue, .cancelled) { moment in
      let cancellation = CancellationFlag()
      let canceller = try Thread("canceller") {
        let _: Void? = Monitor(()).wait(until: moment) { _ in nil }
        cancellation.cancel()
      }
      canceller.detach()
      return Patience(cancellation: cancellation)
    }
  }

  /// Waits until the timeout, and shows that the wait is over for the other waiters as well.
  private func giveUp(
    in queue: Queue, _ code: WormholeError.Code, _ patience: (Instant) throws -> Patience
  ) throws {
    let never = LockPolicy(lease: nil, cap: nil)
    let holding = try Holding(slot)
    let waiter = queue == .threads ? slot : try another()
    let (due, bystander) = (Instant.now + .milliseconds(60), try Bystander())
    let error = try #require(throws: WormholeError.self) {
      try waiter.change("update", policy: never, patience: try patience(due)) { _ in
        Issue.record("it had the lock")
        return .none
      }
    }
    let late = Instant.now - due
    #expect(error.code == code)
    #expect(late >= .zero && late < .seconds(1) + bystander.allowance(), "\(late)")
    try holding.end()
    // The wait that timed out is still in the kernel's queue. It must not hold the lock without a
    // caller.
    for slot in [try another(), waiter, slot] {
      try slot.add(policy: never, patience: Patience(until: .now + .seconds(20)))
    }
    #expect(try slot.number() == 3)
  }

  @Test func aWaitGivenUpMayBeTakenUpAgain() throws {
    let never = LockPolicy(lease: nil, cap: nil)
    let holding = try Holding(slot)
    let waiter = try another()
    for _ in 0..<3 {
      #expect(throws: WormholeError.self) {
        try waiter.add(policy: never, patience: Patience(until: .now + .milliseconds(10)))
      }
    }
    let again = try Thread("again") { _ = try? waiter.add(policy: never) }
    try holding.end()
    again.join()
    #expect(try slot.number() == 1)
    #expect(try slot.add(policy: never, patience: Patience(until: .now + .seconds(20))) == 2)
  }

  // MARK: Children

  /// Starts a job that starts another process, and waits for the child's process ID and the other
  /// words.
  private func start(
    _ job: PeerJob, saying words: [String] = []
  ) throws -> (parent: Running, child: Int32) {
    let parent = try Running(job)
    let child = try eventually("it says a number") { () -> Int32? in
      let lines = try parent.output.split(separator: "\n", omittingEmptySubsequences: false)
        .dropLast().map(String.init)
      guard words.allSatisfy(lines.contains) else { return nil }
      return lines.compactMap { Int32($0) }.first
    }
    return (parent, child)
  }

  /// A program that was started inside an update has none of the update's descriptors.
  @Test func aSpawnedChildKeepsNothing() throws {
    let (parent, child) = try start(
      .spawnInside(container.path, "n"), saying: ["lingering"])
    defer { try? Processes.send(.kill, to: child) }
    try parent.child.send(.kill)
    _ = try parent.outcome()
    let open = try Descriptor.open(path: "/proc/\(child)/fd", [.readOnly, .directory]).names()
    #expect(open.sorted() == ["0", "1", "2"])
    let sum = try slot.add(
      policy: LockPolicy(lease: nil, cap: nil), patience: Patience(until: .now + .seconds(20)))
    #expect(sum == 1)
    #expect(container.counters.takeovers == 0)
    let state = try Processes.state(child)
    #expect(state != nil && state != "Z", "it lives, and that does not matter")
  }

  /// A forked child continues from the state of its parent, and must not generate the same names.
  @Test func copiesMakeUpOtherNames() throws {
    let outcome = try run(.nameCopies)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let names = outcome.output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(names.map(\.count) == [3, 3, 3, 3])
    #expect(Set(names.joined()).count == 12, "\(outcome.output)")
  }

  /// A copy of a dead holder does not have its lock.
  @Test func aForkedCopyKeepsNoLock() throws {
    let (parent, child) = try start(.forkInside(container.path, "n"))
    defer { try? Processes.send(.kill, to: child) }
    try parent.child.send(.kill)
    _ = try parent.outcome()
    let sum = try slot.add(
      policy: LockPolicy(lease: nil, cap: nil), patience: Patience(until: .now + .seconds(20)))
    #expect(sum == 1)
    #expect(container.counters.takeovers == 0)
    let state = try Processes.state(child)
    #expect(state != nil && state != "Z", "it lives, and that does not matter")
  }
}
