import TestSupport
import TestTraits
import Testing

@testable import WormholeContainerStorage
@testable import WormholeSyscalls

/// Holders of locks and names as waiters and inspections see them, and refused directories.
@Suite(.blocking) struct HolderReportTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  /// The process is stopped, and a person can resume it.
  @Test func aSuspendedWorkerIsAProblem() throws {
    let queue = try container.member("q", in: .queues)
    let (home, presence) = try queue.makeWorker(deadline: nil)
    defer { presence.release() }
    let sleeper = try Running("sleep", ["600"])
    try sleeper.child.send(.stop)
    try sleeper.waitUntilStopped()
    let process = sleeper.child.process
    let status = try #require(ProcessStatus(of: process))
    let identity = ProcessIdentity(
      process: process, namespace: ProcessIdentity.current.namespace, started: status.started,
      program: "sleep", seed: 1)
    try HolderMark(of: identity).write(
      to: home.home.descriptor.open(MemberDirectory.presenceName, [.readWrite]))
    #expect(
      try container.inspect().filter { $0.subject == home.path } == [
        Diagnosis(
          .problem, home.path, "a worker: 'sleep' (process \(process), stopped)",
          advice: "resume the process with 'kill -CONT \(process)', or end the process")
      ])
  }

  /// Names that file systems and paired watches use are no foreign files.
  @Test func directoriesThatContainersMayHaveAreNotForeign() throws {
    let names = ["lost+found", "watches", "notes"]
    for name in names { try container.root.descriptor.makeDirectory(name, mode: 0o700) }
    let found = try container.inspect().filter { names.contains($0.subject) }
    #expect(found.map(\.subject) == ["notes"])
  }

  /// Directories of generations have numbers, too, and a clock may have jumped back.
  @Test func aHeldLockIsTheHighestFile() throws {
    let locks = "system/lock.x/lock"
    for path in ["system/lock.x", locks, locks + "/2.d", locks + "/7.d"] {
      try container.root.descriptor.makeDirectory(path, mode: 0o700)
    }
    let directory = try container.root.descriptor.open(locks, .readOnlyDirectory)
    _ = try directory.open("1", .writeOnlyNew, mode: 0o600)
    let file = try directory.open("2", .readWriteNew, mode: 0o600)
    #expect(try container.heldLocks().isEmpty)
    #expect(try file.tryLock(.exclusive))
    let hour: Int64 = 3_600_000_000_000
    try directory.setModified(of: "2.d", to: Clocks.sinceEpoch + hour)
    let held = try container.heldLocks()
    #expect(held.map(\.name) == ["x"])
    #expect(held.map(\.generation) == [2])
    #expect(held.first?.age == .zero)
    try directory.setModified(of: "2.d", to: Clocks.sinceEpoch - hour)
    let age = try #require(try container.heldLock("x")?.age)
    #expect(age >= .seconds(3600) && age < .seconds(7200))
    try file.unlock()
    #expect(try container.heldLocks().isEmpty)
  }

  /// A lock is granted once for each wait; a grant that no caller wants any more is returned.
  @Test func eachWaitHasAGrantOfItsOwn() throws {
    try folder.write("", to: "lock")
    let path = folder.path + "/lock"
    let lock = LockFile(number: 1, file: try Descriptor.open(path: path, [.readWrite]))
    defer { lock.retire() }
    let other = try Descriptor.open(path: path, [.readWrite])
    #expect(try other.tryLock(.exclusive))
    try lock.request()
    try other.unlock()
    #expect(try lock.wait(until: .now + patience))
    try lock.unlock()
    #expect(try other.tryLock(.exclusive))
    try lock.request()
    #expect(try !lock.wait(until: .now))
    lock.giveUp()
    try other.unlock()
    // As long as the thread is in the queue, no call is made, and none can fail.
    FaultPoints.with([FaultRule(.flock, persistent: true, .fail(.inputOutput))]) {
      #expect(throws: Errno.inputOutput) {
        try eventually("the thread has left the queue") { try lock.tryLock() }
      }
    }
    #expect(try other.tryLock(.exclusive))
  }

  /// The end of a directory, and its return, concern a listener for a single name too.
  @Test func aListenerForOneNameHearsOfItsDirectory() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add()
    let heard = Heard<WatchSignal>()
    let watch = try NamedWatch(
      container, ["channels", "n"], .closedAfterWriting, name: "absent"
    ) { heard.add($0) }
    #expect(try run("rm", ["-r", container.path + "/channels/n"]).status == .exited(0))
    try heard.wait("the directory is gone") { $0.contains(.gone) }
    try slot.add()
    try heard.wait("the directory has returned") { $0.contains(.replaced) }
    watch.stop()
  }

  /// The kernel allows each user a limited number of watches.
  @Test func aDirectoryIsWatchedOnlyAsLongAsAListenerForOneNameIsThere() throws {
    let notices = try container.folder(.notices)
    let watch = try NamedWatch(
      container, ["notices"], .closedAfterWriting, name: "n"
    ) { _ in }
    func isWatched() throws -> Bool {
      try watchMasks(of: notices.descriptor).contains { $0.contains(.closedAfterWriting) }
    }
    #expect(try isWatched())
    watch.stop()
    // While another listener of the process is being registered, the kernel's watch stays.
    #expect(throws: Never.self) {
      try eventually("the kernel's watch has ended") { try !isWatched() }
    }
  }

  /// The mode explains why a directory cannot be opened; without such a reason the error stays.
  @Test func aDirectoryThatCannotBeOpenedIsExplainedByItsMode() throws {
    let location = try ContainerLocation(
      group: "group.a", environment: ["WORMHOLE_ROOT": folder.path], home: nil)
    try location.prepare(.owner)
    let path = location.directory
    func refusal() throws -> WormholeError {
      var error: WormholeError?
      try FaultPoints.with([FaultRule(.open, path: "/group.a", .fail(.accessDenied))]) {
        error = try failure { try location.prepare(.owner) }
      }
      return try #require(error)
    }
    let plain = try refusal()
    #expect(plain.code == .permissionDenied)
    #expect(plain.operation == "use directory")
    #expect(plain.subject == path)
    #expect(plain.errno == Errno.accessDenied.rawValue)
    try Descriptor.open(path: path, .readOnlyDirectory).setMode(0o722)
    let explained = try refusal()
    #expect(explained.code == .refused)
    #expect(explained.subject == path)
    #expect(explained.reason == "unauthorized users may write to the directory")
    #expect(explained.hint == "chmod go-w '\(path)'")
  }
}
