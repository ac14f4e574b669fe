import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// P10: the end of an access wakes the access that is next, and not every waiter.
@Suite(.blocking) struct AccessNotifierTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let room: AccessDirectory

  init() throws {
    (folder, container) = try Container.forTest()
    room = try AccessDirectory(container)
  }

  private static func name(_ number: Int) -> AccessName {
    AccessName(stamp: UInt64(number + 1), process: "0123456789abcdef", number: number)
  }

  @Test func theEndOfAnAccessWakesItsOwnWaiterOnly() throws {
    let bell = room.bell
    bell.enter(room)
    defer { bell.leave() }
    let woken = Monitor(Set<Int>())
    // Each waits for all accesses before its own; the latest one is the first.
    let threads = try (0..<4).map { last in
      try Thread("waiter") {
        let blockers = (0...last).reversed().map(Self.name)
        let rings = bell.rings
        bell.wait(for: blockers, since: rings, until: .now + patience)
        woken.signal { _ = $0.insert(last) }
      }
    }
    #expect(throws: Never.self) {
      try eventually("all sleep") { bell.sleeperCount == 4 }
    }
    bell.hear([Self.name(2)])
    #expect(throws: Never.self) {
      try eventually("the waiter of the third access is woken") {
        woken.withLock { $0 } == [2]
      }
    }
    #expect(bell.sleeperCount == 3)
    #expect(bell.hasEnded(Self.name(2)) && !bell.hasEnded(Self.name(1)))
    // A notice without names concerns all.
    bell.hear(nil)
    for thread in threads { thread.join() }
    #expect(woken.withLock { $0 } == [0, 1, 2, 3])
  }

  /// An access that has ended before a waiter sleeps does not let it sleep.
  @Test func whatHasEndedIsNotWaitedFor() throws {
    let bell = room.bell
    bell.enter(room)
    defer { bell.leave() }
    let rings = bell.rings
    bell.hear([Self.name(0)])
    bell.wait(for: [Self.name(0)], since: rings, until: .distantFuture)
    // A second access still blocks, so the call returns at its deadline.
    let begin = Instant.now
    bell.wait(
      for: [Self.name(0), Self.name(1)], since: rings, until: begin + .milliseconds(20))
    #expect(Instant.now >= begin + .milliseconds(20))
  }
}
