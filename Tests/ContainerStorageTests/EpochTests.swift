import TestSupport
import TestTraits
import Testing
@testable import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The epoch rises with each start of the machine, no matter which process notices it first, and
/// with nothing else.
@Suite(.blocking) struct EpochTests {
  private let folder: TemporaryDirectory
  private let path: String

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
  }

  /// - Parameter clock: nanoseconds since the machine started; nil: its own.
  private func open(boot: String, clock: Int64? = nil) throws -> Container {
    var options = ContainerOptions.testing()
    options.environment.bootIdentifier = { boot }
    if let clock { options.environment.sinceBoot = { clock } }
    return try Container.open(path, options: options)
  }

  private func epoch(boot: String, clock: Int64? = nil) throws -> Int {
    try open(boot: boot, clock: clock).epoch()
  }

  private func write(_ record: EpochRecord) throws {
    let slot = try open(boot: "").slot(.system, "epoch")
    try slot.change("write") { _ in .put(try record.encoded()) }
  }

  @Test func staysWhileTheMachineRuns() throws {
    for _ in 0..<3 { #expect(try epoch(boot: "a") == 1) }
  }

  @Test func risesOnceAStart() throws {
    #expect(try epoch(boot: "a") == 1)
    for (boot, epoch) in [("b", 2), ("b", 2), ("c", 3)] {
      #expect(try self.epoch(boot: boot) == epoch)
    }
  }

  @Test func isTheSameForAllThatAnObjectStamps() throws {
    let container = try open(boot: "a")
    #expect(try container.epoch() == 1)
    #expect(try container.epoch() == 1)
    #expect(try container.recordedEpoch() == 1)
  }

  @Test func risesOnceHoweverManyNotice() throws {
    #expect(try epoch(boot: "a") == 1)
    let seen = Monitor<[Int]>([])
    let threads = try (0..<8).map { _ in
      try Thread("opener") {
        let epoch = try? epoch(boot: "b")
        seen.signal { $0.append(epoch ?? -1) }
      }
    }
    for thread in threads { thread.join() }
    #expect(seen.withLock { $0 } == Array(repeating: 2, count: 8))
  }

  @Test func whoOnlyReadsAndWritesValuesAsksForNone() throws {
    let container = try open(boot: "a")
    try container.slot(.channels, "c").change("put") { _ in .put(try BinaryEncoder().encode(1)) }
    #expect(try container.recordedEpoch() == 0)
    #expect(try !container.names(in: .system).contains("epoch"))
  }

  // MARK: Different names on one machine

  @Test func anotherNameOfARunRaisesNothingWhileSomebodyStamps() throws {
    let living = try open(boot: "host")
    #expect(try living.epoch() == 1)
    for boot in ["one", "two", "three"] { #expect(try epoch(boot: boot) == 1) }
    #expect(try epoch(boot: "host") == 1)
  }

  @Test func eachNameRaisesItOnceAtMost() throws {
    for _ in 0..<3 {
      for boot in ["one", "two", "three"] { _ = try epoch(boot: boot) }
    }
    #expect(try epoch(boot: "one") == 3)
  }

  /// A process that only reads may have opened the container before every process that has stamped
  /// since the machine started.
  @Test func whoHasOnlyOpenedItProvesNothing() throws {
    #expect(try epoch(boot: "a") == 1)
    let reader = try open(boot: "b")
    _ = try reader.slot(.channels, "c").read()
    #expect(try epoch(boot: "c") == 2)
  }

  @Test func withoutANameForTheRunItGoesByTheClock() throws {
    #expect(try epoch(boot: "", clock: 100) == 1)
    #expect(try epoch(boot: "", clock: 200) == 1)
    #expect(try epoch(boot: "", clock: 50) == 2)
    #expect(try epoch(boot: "", clock: 60) == 2)
  }

  @Test func aClockThatIsBehindTellsOfAStart() throws {
    #expect(try epoch(boot: "a", clock: 1000) == 1)
    #expect(try epoch(boot: "a", clock: 999) == 2)
  }

  @Test func whatIsUndecidedIsDecidedByWhoeverComesNext() throws {
    var record = EpochRecord(epoch: 7)
    record.note("a", now: 0)
    record.isUndecided = true
    try write(record)
    #expect(try epoch(boot: "a") == 8, "somebody may stamp in an epoch after 7")
    #expect(try epoch(boot: "a") == 8)
  }

  @Test func oldNamesAreForgotten() throws {
    for number in 0..<(EpochRecord.longestList + 8) { _ = try epoch(boot: "boot \(number)") }
    let latest = EpochRecord.longestList + 8
    #expect(try epoch(boot: "boot 10") == latest)
    #expect(try epoch(boot: "boot 7") == latest + 1)
  }

  /// Programs that know the machine's run by many names come and go.
  ///
  /// Two programs that are present at the same time have the same epoch, and no program has an
  /// earlier epoch than a program before it.
  @Test func ofAllWhoAreThereAtOnceNobodyHasAnotherEpoch() throws {
    let highest = Monitor(0)
    let mistakes = Monitor<[String]>([])
    let threads = try (0..<6).map { number in
      try Thread("opener") {
        do {
          var round = 0
          // The epoch does not rise while there is always another program; the last program is
          // alone in the end.
          while round < 40 || round < 1000 && highest.withLock({ $0 }) == 1 {
            defer { round += 1 }
            let before = highest.withLock { $0 }
            let container = try open(boot: "\((number * 7 + round) % 80)")
            let epoch = try container.epoch()
            let now = highest.withLock { highest in
              highest = max(highest, epoch)
              return highest
            }
            if epoch < before || now > epoch {
              mistakes.signal { $0.append("\(epoch) after \(before), beside \(now)") }
            }
            for _ in 0..<(round % 4) { Processes.yield() }
            let end = highest.withLock { $0 }
            if end > epoch { mistakes.signal { $0.append("raised to \(end) beside \(epoch)") } }
            withExtendedLifetime(container) {}
          }
        } catch {
          mistakes.signal { $0.append("\(error)") }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(mistakes.withLock { $0 } == [])
    #expect(highest.withLock { $0 } > 1, "it was never raised, so nothing was tried")
  }

  /// A process that arrives in the middle of a decision, at any step, has the same epoch
  /// afterwards.
  @Test(arguments: 1...4) func whoComesBeforeADecisionIsDoneHasTheSameEpoch(step: Int) throws {
    #expect(try epoch(boot: "a") == 1)
    let path = path
    let steps = Monitor(0)
    let comer = Monitor<Container?>(nil)
    let isThere = Monitor(false)
    let threads = Monitor<[Thread]>([])
    // The decider reads the clock before and after it checks for other processes.
    var options = ContainerOptions.testing()
    options.lease = .seconds(60)
    let patient = options
    options.environment.bootIdentifier = { "b" }
    options.environment.sinceBoot = {
      let count = steps.withLock { steps in
        steps += 1
        return steps
      }
      guard count == step else { return Clocks.sinceBoot }
      let thread = try? Thread("comer") {
        var options = patient
        options.environment.bootIdentifier = { "a" }
        let container = try? Container.open(path, options: options)
        _ = try? container?.epoch()
        comer.withLock { $0 = container }
        isThere.signal { $0 = true }
      }
      threads.withLock { $0 = thread.map { [$0] } ?? [] }
      // The newcomer may have to wait for this very decision.
      _ = isThere.wait(until: .now + .milliseconds(100)) { $0 ? true : nil }
      return Clocks.sinceBoot
    }
    let decider = try Container.open(path, options: options)
    let decided = try decider.epoch()
    for thread in threads.withLock({ $0 }) { thread.join() }
    #expect(try comer.withLock { try $0?.epoch() } == decided)
    withExtendedLifetime(decider) {}
  }

  // MARK: What cannot be

  @Test func theLastEpochIsNotPassed() throws {
    var record = EpochRecord(epoch: EpochRecord.last)
    record.note("a", now: 0)
    try write(record)
    #expect(try epoch(boot: "a") == EpochRecord.last)
    let error = #expect(throws: WormholeError.self) { try epoch(boot: "b") }
    #expect(error?.code == .full)
    #expect(try open(boot: "b").slot(.channels, "c").read().isNothing)
  }
}

extension Slot.Content {
  fileprivate var isNothing: Bool { if case .nothing = self { true } else { false } }
}
