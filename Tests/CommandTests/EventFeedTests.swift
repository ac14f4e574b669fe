import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeCommand

/// Changes during the start of `wormhole events`, and between its checks.
@Suite(.blocking) struct EventFeedTests {
  private let heard = Heard<String>()

  private func feed(_ container: SharedContainer, _ kind: EventKind) -> EventFeed {
    let heard = heard
    return EventFeed(container, [kind], failure: { _ in }) { heard.add($0.event) }
  }

  /// Starts the feed on a thread that waits at one call, and runs the body during the wait.
  private func start(
    _ feed: EventFeed, pausingAt call: Call, _ path: String, number: Int = 1,
    _ body: () throws -> Void
  ) throws {
    let pause = FaultPause()
    let rule = FaultRule(call, path: path, number: number, .pause(pause))
    let thread = try Thread("start") {
      _ = try? FaultPoints.with([rule]) { try feed.start() }
    }
    defer {
      pause.open()
      thread.join()
    }
    try eventually("the start has come to the call") { pause.isReached }
    try body()
  }

  // MARK: Accesses

  /// An access to a file of no group, on a thread of its own.
  private final class HeldAccess {
    private let stage = Monitor((isInside: false, isOver: false))
    private let thread: Thread

    init(_ coordinator: Coordinator, _ path: String) throws {
      let stage = stage
      thread = try Thread("access") {
        try? coordinator.write(path) { _ in
          stage.signal { $0.isInside = true }
          let _: Void? = stage.wait(until: .now + .seconds(60)) { $0.isOver ? () : nil }
        }
      }
      try eventually("the access has begun") { stage.withLock { $0.isInside } }
    }

    func end() {
      stage.signal { $0.isOver = true }
      thread.join()
    }
  }

  /// The user's container, in which the accesses to the files of no group are.
  private struct AccessPlaces {
    let folder: TemporaryDirectory
    let coordinator: Coordinator
    let container: SharedContainer
    var file: String { folder.path + "/file" }

    init() throws {
      folder = try TemporaryDirectory()
      try folder.descriptor.makeDirectory("groups", mode: 0o700)
      let groups = folder.path + "/groups"
      coordinator = Coordinator(Arbiters(.testing(lease: .seconds(60)), root: groups))
      try coordinator.write(folder.path + "/file") { _ in }
      container = try SharedContainer(directory: "\(groups)/wormhole.user/.wormhole")
    }
  }

  @Test func theEndOfAnAccessThatBeganDuringTheStartIsReported() throws {
    let places = try AccessPlaces()
    defer { withExtendedLifetime(places) {} }
    let feed = feed(places.container, .access)
    defer { feed.stop() }
    var access: HeldAccess?
    try start(feed, pausingAt: .inotifyAdd, "coordination/waiting") {
      access = try HeldAccess(places.coordinator, places.file)
    }
    access?.end()
    try heard.wait("the end") { $0.contains("ended") }
  }

  @Test func anAccessWhoseDirectoryIsReplacedHasEnded() throws {
    let places = try AccessPlaces()
    defer { withExtendedLifetime(places) {} }
    let access = try HeldAccess(places.coordinator, places.file)
    defer { access.end() }
    let feed = feed(places.container, .access)
    defer { feed.stop() }
    try feed.start()
    let folder = OpenDirectory(
      try Descriptor.open(
        path: places.container.directory + "/system/coordination", [.readOnly, .directory]))
    try folder.descriptor.rename("running", to: folder.descriptor, "moved")
    defer {
      try? folder.descriptor.removeDirectory("running")
      try? folder.descriptor.rename("moved", to: folder.descriptor, "running")
    }
    try folder.descriptor.makeDirectory("running", mode: 0o700)
    try heard.wait("the end") { $0.contains("ended") }
    #expect(heard.all == ["ended"])
  }

  // MARK: Settings

  /// Whichever call of the start is refused.
  @Test func aSuiteWhoseWatchIsRefusedIsWatchedLater() throws {
    let folder = try TemporaryDirectory()
    let settings = try SharedContainer(directory: folder.path).defaults("cinema")
    try settings.set(0, forKey: "rows")
    var changes = 0
    for number in 1...16 {
      // A container that has opened no directory of the suite yet.
      let feed = feed(try SharedContainer(directory: folder.path), .setting)
      defer { feed.stop() }
      let rule = FaultRule(
        .open, path: "/defaults.cinema", number: number, .fail(.tooManyOpenFiles))
      guard (try? FaultPoints.with([rule]) { try feed.start() }) != nil else { continue }
      try eventually("the suite is watched after a refusal of call \(number)") {
        feed.state.withLock { $0.suites["cinema"] != nil }
      }
      changes += 1
      try settings.set(changes, forKey: "rows")
      try heard.wait("change \(changes)") { $0.count >= changes }
    }
    #expect(changes > 0)
    // The settings at the start are no events.
    #expect(heard.all == [String](repeating: "changed", count: changes))
  }

  /// The suite was made after the start, so its first settings are events.
  @Test func theSettingsOfANewSuiteWhoseWatchWasRefusedAreReported() throws {
    let folder = try TemporaryDirectory()
    try SharedContainer(directory: folder.path).defaults("cinema").set(1, forKey: "rows")
    let feed = feed(try SharedContainer(directory: folder.path), .setting)
    defer { feed.stop() }
    let rule = FaultRule(
      .open, path: "/defaults.cinema", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { feed.watchSuite("cinema", isOld: false) }
    #expect(feed.state.withLock { $0.unwatchedSuites } == ["cinema": false])
    #expect(heard.all == [])
    feed.checkSuites()
    try heard.wait("the setting") { !$0.isEmpty }
    #expect(heard.all == ["changed"])
  }

  /// No further notice comes of the change whose reading was refused.
  @Test func aSettingWhoseReadingIsRefusedIsReadLater() throws {
    let folder = try TemporaryDirectory()
    let settings = try SharedContainer(directory: folder.path).defaults("cinema")
    try settings.set(0, forKey: "rows")
    let feed = feed(try SharedContainer(directory: folder.path), .setting)
    defer { feed.stop() }
    let changes = DefaultsChanges([:], only: nil)
    let rule = FaultRule(
      .open, path: "/defaults.cinema", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { feed.check("cinema", changes) }
    #expect(heard.all == [])
    #expect(feed.state.withLock { $0.unreadSuites } == ["cinema"])
    feed.check("cinema", changes)
    #expect(heard.all == ["changed"])
    try feed.start()
    try eventually("the suite is read again") {
      feed.state.withLock { $0.unreadSuites.isEmpty }
    }
  }

  // MARK: Locks

  /// A container, and a process that has stopped while it holds a lock.
  private func heldLock() throws -> (
    folder: TemporaryDirectory, container: SharedContainer, holder: Running
  ) {
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/c")
    let holder = try Running(.holdNamedLock(container.directory, "till"))
    try holder.waitUntilStopped()
    return (folder, container, holder)
  }

  private static let lockFile = "lock.till/lock/1"

  @Test func aReadingOfALockIsNotReportedAfterANewerOne() throws {
    let (folder, container, holder) = try heldLock()
    defer { withExtendedLifetime(folder) {} }
    let feed = feed(container, .lock)
    defer { feed.stop() }
    // The second check has found the lock held.
    try start(feed, pausingAt: .fstatat, Self.lockFile + ".d", number: 2) {
      try holder.child.send(.kill)
      _ = try holder.outcome()
      // A check that does not wait for the first one reports the end now.
      try? heard.wait("a check", within: .milliseconds(200)) { !$0.isEmpty }
    }
    try heard.wait("the end") { $0.contains("free") }
    #expect(heard.all == ["free"])
  }

  @Test func aRefusedCheckOfALockReportsNothing() throws {
    let (folder, container, holder) = try heldLock()
    defer { withExtendedLifetime(folder) {} }
    let feed = feed(container, .lock)
    defer { feed.stop() }
    let rule = FaultRule(.open, path: Self.lockFile, number: 2, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) { try feed.start() }
    #expect(heard.all == [])
    try holder.child.send(.kill)
    try heard.wait("the end") { $0.contains("free") }
    #expect(heard.all == ["free"])
  }

  /// No further notice of the lock comes, and no earlier check has found the lock held.
  @Test func aLockWhoseReadingIsRefusedIsReadLater() throws {
    let (folder, container, holder) = try heldLock()
    defer { withExtendedLifetime(folder) {} }
    let feed = feed(container, .lock)
    defer { feed.stop() }
    let rule = FaultRule(.open, path: Self.lockFile, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { feed.check(lock: "till") }
    #expect(heard.all == [])
    #expect(feed.state.withLock { $0.uncheckedLocks } == ["till"])
    #expect(feed.checkHeldLocks())
    #expect(heard.all == ["held"])
    #expect(feed.state.withLock { $0.uncheckedLocks } == [])
    try holder.child.send(.kill)
    _ = try holder.outcome()
  }

  /// Whichever call of the start is refused.
  @Test func aLockWhoseWatchIsRefusedIsWatchedLater() throws {
    let (folder, container, holder) = try heldLock()
    defer { withExtendedLifetime(folder) {} }
    for number in 1...16 {
      let feed = feed(container, .lock)
      defer { feed.stop() }
      let rule = FaultRule(.open, path: "/lock.till", number: number, .fail(.tooManyOpenFiles))
      // The first calls find the locks that are held, without which there is no start.
      guard (try? FaultPoints.with([rule]) { try feed.start() }) != nil else { continue }
      try eventually("the lock is watched after a refusal of call \(number)") {
        feed.state.withLock { $0.slots["lock.till"] != nil }
      }
    }
    try holder.child.send(.kill)
    _ = try holder.outcome()
  }

  @Test(.notSanitized("about what a command does"))
  func aHolderThatIsStoppedHoldsTheLockAsBefore() throws {
    let stage = try Stage()
    defer { withExtendedLifetime(stage) {} }
    let container = try SharedContainer(directory: stage.container)
    let holder = try stage.start(
      "wormhole lock till -- sh -c 'while kill -0 $PPID; do sleep 0.05; done'")
    try eventually("the holder has its mark") {
      try container.storage.heldLock("till")?.holder?.process == holder.child.process
    }
    let feed = feed(container, .lock)
    defer { feed.stop() }
    try start(feed, pausingAt: .open, Self.lockFile, number: 2) {
      try holder.child.send(.stop)
      try holder.waitUntilStopped()
    }
    #expect(heard.all == [])
    try holder.child.send(.kill)
    try heard.wait("the end") { $0.contains("free") }
  }
}
