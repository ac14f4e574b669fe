import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Slow is not suspended: when a holder is taken for suspended, and when not.
@Suite(.blocking) struct LeaseTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// Two containers on one directory: to the lock, two processes.
  private func open(
    lease: Duration, _ other: Duration? = nil, cap: Duration = .seconds(10)
  ) throws -> [Container] {
    try [lease, other ?? lease].map { lease in
      var options = ContainerOptions.testing(lease: lease)
      options.cap = cap
      return try Container.open(folder.path + "/c", options: options)
    }
  }

  /// Uses a processor until the condition is true.
  private static func work(until isDone: () -> Bool) { while !isDone() {} }

  /// One update that takes long, beside an update that wants the lock in the meantime; returns the
  /// results of both.
  private func race(
    _ slots: [Slot], slow: @escaping @Sendable (Slot.Content) throws -> SlotChange
  ) throws -> (slow: Result<ChangeOutcome, any Error>, sum: Int, runs: Int) {
    let begun = Gate()
    let ended = Monitor((slow: Result<ChangeOutcome, any Error>?.none, sum: 0, runs: 0))
    try together(2) { index in
      if index == 1 {
        try begun.wait()
        let sum = try slots[1].add()
        return ended.withLock { $0.sum = sum }
      }
      let outcome = Result {
        try slots[0].change("update") { content in
          ended.withLock { $0.runs += 1 }
          begun.open()
          return try slow(content)
        }
      }
      ended.withLock { $0.slow = outcome }
    }
    return try ended.withLock { (try #require($0.slow), $0.sum, $0.runs) }
  }

  @Test func slowButRunningIsNotPassedBy() throws {
    try checkThatSlowIsNotPassedBy(lease: .milliseconds(200)) {
      $0
    } slow: { end in
      Self.work { Instant.now > end }
    }
  }

  /// A process's lease limits its patience with other processes, and not the patience of other
  /// processes with it.
  @Test func slowAndPatientIsNotPassedBy() throws {
    try checkThatSlowIsNotPassedBy(lease: .seconds(1)) { _ in
      .seconds(60)
    } slow: { end in
      _ = Monitor(0).wait(until: end) { _ in Bool?.none }
    }
  }

  /// Unless this process did not run for a good part of the lease, as happens on a busy machine.
  private func checkThatSlowIsNotPassedBy(
    lease shortest: Duration, own: (Duration) -> Duration,
    slow: @escaping @Sendable (_ end: Instant) -> Void
  ) throws {
    for round in 0..<6 {
      let lease = shortest * (1 << round)
      let containers = try open(lease: own(lease), lease, cap: .seconds(100))
      let bystander = try Bystander()
      let name = "\(UInt64.random(in: 0 ... .max))"
      let ended = try race(try containers.map { try $0.slot(.channels, name) }) { content in
        slow(.now + lease * 7 / 2)
        return .put(try BinaryEncoder().encode(try Slot.number(in: content) + 1))
      }
      guard bystander.longestDelay() < lease / 4 else { continue }
      #expect(try ended.slow.get() == .committed)
      #expect(ended.sum == 2, "the slow one came first")
      #expect(ended.runs == 1)
      for container in containers { #expect(container.counters == ContainerCounters()) }
      return
    }
    Issue.record("the machine never ran it for long enough")
  }

  @Test func whoExceedsTheCapIsPassedByAndLearnsIt() throws {
    let slots = try open(lease: .milliseconds(50), cap: .milliseconds(100))
      .map { try $0.slot(.channels, "n") }
    let ended = try race(slots) { _ in
      // Long past the cap, however seldom the renewing thread runs on a busy machine; and until the
      // other update has committed, because nothing less shows that the other had the lock to
      // itself.
      let (cap, end) = (Instant.now + .milliseconds(600), Instant.now + patience)
      Self.work { Instant.now > cap && (try? slots[1].number()) == 1 || Instant.now > end }
      return .put(try BinaryEncoder().encode(100))
    }
    let error = #expect(throws: WormholeError.self) { try ended.slow.get() }
    #expect(error?.code == .superseded)
    #expect(ended.sum == 1, "it did not wait for the slow one")
    #expect(ended.runs == 1)
    #expect(try slots[0].number() == 1)
    #expect(try slots[0].add() == 2)
  }

  /// A rerun would take as long, and again.
  @Test func whoExceedsTheCapWithSeveralSlotsLearnsIt() throws {
    let containers = try open(lease: .milliseconds(50), cap: .milliseconds(100))
    let slots = try ["left", "right"].map { try containers[0].slot(.channels, $0) }
    let other = try containers[1].slot(.channels, "right")
    let begun = Gate()
    let ended = Monitor((error: WormholeError?.none, runs: 0))
    try together(2) { index in
      guard index == 0 else {
        try begun.wait()
        try other.add()
        return
      }
      do {
        try containers[0].change(slots, "update") { _ in
          ended.withLock { $0.runs += 1 }
          begun.open()
          let (cap, end) = (Instant.now + .milliseconds(600), Instant.now + patience)
          Self.work { Instant.now > cap && (try? other.number()) == 1 || Instant.now > end }
          return [.put(try BinaryEncoder().encode(100)), .put(try BinaryEncoder().encode(100))]
        }
      } catch let error as WormholeError {
        ended.withLock { $0.error = error }
      }
    }
    #expect(ended.withLock { $0.error?.code } == .superseded)
    #expect(ended.withLock { $0.runs } == 1)
    #expect(try slots.map { try $0.number() } == [0, 1])
  }

  @Test func whoExceedsTheCapAndHoldsUpNobodyCommits() throws {
    let slot = try open(lease: .milliseconds(20), cap: .milliseconds(40))[0].slot(.channels, "n")
    let outcome = try slot.change("update") { _ in
      let end = Instant.now + .milliseconds(150)
      Self.work { Instant.now > end }
      return .put(try BinaryEncoder().encode(7))
    }
    #expect(outcome == .committed)
    #expect(try slot.number() == 7)
  }

  // MARK: The waiter's judgement

  private static let start = Instant(nanoseconds: 1_000_000_000)

  /// Observes these marks at these times, usually every ten milliseconds.
  ///
  /// Returns the time at which the holder was judged to be suspended.
  private func judged(
    _ marks: [Int], at looks: [Int], lease: Duration = .milliseconds(80)
  ) -> Int? {
    var observation = LeaseObservation<Int>(lease: lease, now: Self.start)
    for (mark, look) in zip(marks, looks)
    where observation.stoodStill(mark, at: Self.start + .milliseconds(look)) {
      return look
    }
    return nil
  }

  @Test func aMarkThatStandsStillForALeaseIsJudged() {
    let looks = Array(stride(from: 10, through: 200, by: 10))
    #expect(judged(looks.map { _ in 1 }, at: looks) == 100, "since the first look, at 10")
    #expect(judged(looks.map { _ in 1 }, at: looks, lease: .milliseconds(160)) == 180)
  }

  @Test func aMarkThatMovesIsNot() {
    let looks = Array(stride(from: 10, through: 400, by: 10))
    #expect(judged(looks.map { $0 / 70 }, at: looks) == nil)
    #expect(judged(looks.map { min($0, 200) }, at: looks) == 290, "it stood from 200 on")
  }

  /// A waiter cannot know the events of the time in which it was suspended itself: little of the
  /// time counts.
  @Test func aWaiterThatSleptCountsLittleOfIt() {
    let looks = [10, 20, 30, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180]
    #expect(judged(looks.map { _ in 1 }, at: looks) == 140, "of the 60 asleep, 20")
    #expect(judged([1, 1, 1], at: [10, 20, 5000]) == nil)
  }

  @Test func looksComeOftenEnough() {
    func interval(_ lease: Duration) -> Duration {
      LeaseObservation<Int>(lease: lease, now: Self.start).interval
    }
    #expect(interval(.milliseconds(80)) == .milliseconds(10))
    #expect(interval(.seconds(60)) == .milliseconds(25))
  }
}
