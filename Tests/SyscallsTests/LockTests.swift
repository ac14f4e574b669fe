import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Both kinds of lock, between descriptions of one file.
@Suite(.blocking) struct LockTests {
  private let folder: TemporaryDirectory

  init() throws {
    folder = try TemporaryDirectory()
    try folder.write("", to: "lock")
  }

  private func open() throws(Errno) -> Descriptor {
    try folder.descriptor.open("lock", [.readWrite])
  }

  @Test func flockExcludesOtherDescriptions() throws {
    let (first, second) = (try Held(open()), try Held(open()))
    #expect(try first.descriptor.tryLock(.exclusive))
    #expect(try !second.descriptor.tryLock(.exclusive))
    #expect(try !second.descriptor.tryLock(.shared))
    try first.descriptor.unlock()
    #expect(try second.descriptor.tryLock(.exclusive))
  }

  @Test func sharedFlocksGoTogether() throws {
    let (first, second) = (try Held(open()), try Held(open()))
    #expect(try first.descriptor.tryLock(.shared))
    #expect(try second.descriptor.tryLock(.shared))
    #expect(try !second.descriptor.tryLock(.exclusive))
  }

  @Test func aWaiterGetsTheFlockWhenItIsGivenBack() throws {
    let (first, second) = (try Held(open()), try Held(open()))
    try first.descriptor.lock(.exclusive)
    let state = Monitor((isWaiting: false, hasLock: false))
    let thread = try Thread("waiter") {
      state.signal { $0.isWaiting = true }
      try? second.descriptor.lock(.exclusive)
      state.signal { $0.hasLock = true }
    }
    let isWaiting = state.wait(until: .now + patience) { $0.isWaiting ? true : nil }
    #expect(isWaiting == true)
    #expect(!state.withLock { $0.hasLock })
    try first.descriptor.unlock()
    let hasLock = state.wait(until: .now + patience) { $0.hasLock ? true : nil }
    #expect(hasLock == true)
    thread.join()
  }

  @Test func askingForPresenceTakesNoLock() throws {
    let (member, prober) = (try Held(open()), try Held(open()))
    #expect(try !prober.descriptor.isPresenceLocked())
    // If the check had left a lock behind, the member could not get its lock.
    #expect(try member.descriptor.tryPresenceLock())
    for _ in 0..<100 { #expect(try prober.descriptor.isPresenceLocked()) }
    try member.descriptor.releasePresenceLock()
    #expect(try !prober.descriptor.isPresenceLocked())
    #expect(try prober.descriptor.tryPresenceLock())
    #expect(try !member.descriptor.tryPresenceLock())
  }

  /// A process that may read a file can have a shared lock on the file, without showing presence.
  @Test func aSharedLockIsNoPresence() throws {
    let (member, prober, reader) = (try Held(open()), try Held(open()), try Held(open()))
    #expect(try reader.descriptor.trySharedPresenceLock())
    #expect(try !prober.descriptor.isPresenceLocked())
    #expect(try prober.descriptor.isPresenceLockedOrShared())
    #expect(try !member.descriptor.tryPresenceLock())
    try reader.descriptor.releasePresenceLock()
    #expect(try !prober.descriptor.isPresenceLockedOrShared())
    #expect(try member.descriptor.tryPresenceLock())
    #expect(try prober.descriptor.isPresenceLockedOrShared())
    #expect(try prober.descriptor.isPresenceLocked())
  }

  @Test func presenceEndsWithTheLastDescriptor() throws {
    let prober = try open()
    do {
      let member = try open()
      #expect(try member.tryPresenceLock())
      let copy = try member.duplicate()
      try member.close()
      let isLocked = try prober.isPresenceLocked()
      #expect(isLocked, "the copy is the same description")
      try copy.close()
    }
    let isLocked = try prober.isPresenceLocked()
    #expect(!isLocked)
  }

  /// A stopped process keeps its locks; a dead one has none.
  @Test func locksOutliveAStopAndEndWithTheProcess() throws {
    let file = try Held(open())
    let holder = try Running(.hold(folder.path, "lock"))
    try eventually("the peer holds them") { try holder.output == "held\n" }
    try holder.child.send(.stop)
    try holder.waitUntilStopped()
    #expect(try !file.descriptor.tryLock(.exclusive))
    #expect(try file.descriptor.isPresenceLocked())
    try holder.child.send(.kill)
    _ = try holder.outcome()
    #expect(try file.descriptor.tryLock(.exclusive))
    #expect(try !file.descriptor.isPresenceLocked())
  }

  @Test func theTwoKindsDoNotMeet() throws {
    let (first, second) = (try Held(open()), try Held(open()))
    #expect(try first.descriptor.tryLock(.exclusive))
    #expect(try second.descriptor.tryPresenceLock())
  }
}

/// A descriptor for use in closures, open as long as the test.
private final class Held: Sendable {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}
