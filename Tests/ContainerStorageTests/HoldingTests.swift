import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Named locks, held while the program does other work.
@Suite(.blocking) struct HoldingTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest(.system, "lock.print") }

  @Test func isHeldWhileTheBodyRuns() throws {
    let other = try Container.open(container.path, options: .testing())
    let held = try slot.hold("lock") { generation in
      #expect(generation == 1)
      let error = #expect(throws: WormholeError.self) {
        let seconds = Patience(until: .now + .milliseconds(60))
        let thread = try Result { try Self.onAnotherThread(other, seconds) }.get()
        if let error = thread { throw error }
      }
      #expect(error?.code == .timedOut)
      return "done"
    }
    #expect(held.result == "done")
    #expect(!held.wasSuperseded)
    #expect(try other.slot(.system, "lock.print").hold("lock") { $0 }.result == 1)
  }

  /// Each waiter sets for itself how long a holder must be suspended before a takeover.
  ///
  /// How often the holder renews its heartbeat does not depend on this time.
  @Test func whoGivesOthersMoreTimeIsNotPassedByAnyEarlier() throws {
    let other = try Container.open(container.path, options: .testing())
    let held = try slot.hold("lock", takeOverAfter: .seconds(60)) { _ in
      try Self.onAnotherThread(
        other, Patience(until: .now + .seconds(4)), takeOverAfter: .seconds(2))
    }
    #expect(held.result?.code == .timedOut)
    #expect(!held.wasSuperseded)
  }

  private static func onAnotherThread(
    _ container: Container, _ patience: Patience, takeOverAfter: Duration? = nil
  ) throws -> WormholeError? {
    let found = Monitor<WormholeError?>(nil)
    let thread = try Thread("waiter") {
      do {
        _ = try container.slot(.system, "lock.print")
          .hold("lock", takeOverAfter: takeOverAfter, patience: patience) { $0 }
      } catch {
        found.signal { $0 = error as? WormholeError }
      }
    }
    thread.join()
    return found.withLock { $0 }
  }

  @Test func aStoppedHolderIsSupersededOnlyWhenAsked() throws {
    let stopped = try Running(
      .holdLock(container.path, "lock.print"))
    try stopped.waitUntilStopped()
    let error = #expect(throws: WormholeError.self) {
      _ = try slot.hold("lock", patience: Patience(until: .now + .milliseconds(150))) { $0 }
    }
    #expect(error?.code == .timedOut)
    #expect(error?.reason.contains("stopped") == true)
    let generation = try slot.hold("lock", takeOverAfter: .milliseconds(60)) { $0 }.result
    #expect(generation == 2)
    try stopped.child.send(.go)
    #expect(try stopped.outcome().output == "superseded\n")
  }

  @Test func whatTheBodyThrowsComesOut() throws {
    struct Mine: Error {}
    #expect(throws: Mine.self) { try slot.hold("lock") { _ in throw Mine() } }
    #expect(try slot.hold("lock") { $0 }.result == 1)
  }

  /// Many more slots than the container keeps open.
  @Test func slotsKeepFewDescriptorsOpen() throws {
    let slots = try (0..<200).map { try container.slot(.channels, "n\($0)") }
    for slot in slots { try slot.add() }
    for slot in slots { try slot.add() }
    #expect(try slots.allSatisfy { try $0.number() == 2 })
    #expect(try Processes.openFiles(below: container.path).count < 400)
  }
}
