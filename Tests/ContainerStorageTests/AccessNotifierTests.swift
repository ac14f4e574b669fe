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
    // Blockers are dropped from the last one on.
    #expect(bell.endedCount(of: [1, 2].map(Self.name)) == 1)
    #expect(bell.endedCount(of: [2, 1].map(Self.name)) == 0)
    // A notice without names concerns all.
    bell.hear(nil)
    for thread in threads { thread.join() }
    #expect(woken.withLock { $0 } == [0, 1, 2, 3])
  }

  /// The end of an access of this process wakes its waiter before the kernel's notice.
  @Test func anOwnAccessTellsOfItsEnd() throws {
    let bell = room.bell
    bell.noteEnd(of: Self.name(0))
    bell.enter(room)
    defer { bell.leave() }
    // Without a waiting thread the notifier remembers no end.
    #expect(bell.endedCount(of: [Self.name(0)]) == 0)
    let claim = AccessClaim([.init(AccessPath("/a"), writes: true)], purpose: "")
    let blocker = AccessExecutor(room, AccessRequest(claim, subject: "a"), .unlimited)
    try blocker.begin()
    try blocker.end(commits: false)
    let name = try #require(blocker.name)
    #expect(bell.endedCount(of: [name]) == 1)
  }

  /// A waiter drops all ended blockers at once.
  @Test func theEndsOfSeveralBlockersAreOneEvent() throws {
    func access(_ purpose: String) -> AccessExecutor {
      let claim = AccessClaim([.init(AccessPath("/a"), writes: true)], purpose: purpose)
      return AccessExecutor(room, AccessRequest(claim, subject: "a"), .unlimited)
    }
    let (first, second, waiter) = (access("first"), access("second"), access("waiter"))
    #expect(try first.arrive())
    #expect(try !second.arrive())
    #expect(try !waiter.arrive())
    try first.end(commits: false)
    #expect(try second.mayRun())
    try second.end(commits: false)
    let last = try #require(waiter.machine.blockers.last)
    #expect(try waiter.look(at: last) == .ended(2))
    #expect(try waiter.mayRun())
    try waiter.end(commits: false)
  }

  /// The file of a dead process's access stays: only the end of the process is reported.
  @Test func theEndOfAProcessWakesAllWaiters() throws {
    try folder.descriptor.makeDirectory("groups", mode: 0o700)
    let (path, groups) = (folder.path + "/file", folder.path + "/groups")
    let room = try Arbiters(.testing(), root: groups).room(for: AccessPath(path))
    let peer = try Running(
      .coordinate(.write, path, .linger, takeOverAfterMilliseconds: nil),
      environment: ["WORMHOLE_ROOT=\(groups)"])
    try eventually("it writes") { try peer.output == "inside\n" }
    let bell = room.bell
    bell.enter(room)
    defer { bell.leave() }
    let isWoken = Monitor(false)
    let rings = bell.rings
    let waiter = try Thread("waiter") {
      bell.wait(for: [Self.name(0)], since: rings, until: .distantFuture)
      isWoken.withLock { $0 = true }
    }
    try eventually("the waiter sleeps") { bell.sleeperCount == 1 }
    try peer.child.send(.kill)
    _ = try peer.outcome()
    #expect(throws: Never.self) {
      try eventually("the waiter is woken") { isWoken.withLock { $0 } }
    }
    bell.hear(nil)
    waiter.join()
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
    // A notice without names, since the caller has looked, concerns it too.
    bell.hear(nil)
    let deadline = Instant.now + patience
    bell.wait(for: [Self.name(1)], since: rings, until: deadline)
    #expect(Instant.now < deadline)
  }
}
