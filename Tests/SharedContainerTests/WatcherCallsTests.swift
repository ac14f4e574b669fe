@testable import SharedContainer
import Synchronization
import Syscalls
import TestSupport
import TestTraits
import Testing

/// What others do while the file system keeps somebody waiting who asks inotify.
@Suite(.serialized, .blocking) struct WatcherCallsTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private final class Log: Sendable {
    private let told = Monitor<[Watcher.Signal]>([])
    func note(_ signal: Watcher.Signal) { told.withLock { $0.append(signal) } }
    var isEmpty: Bool { told.withLock { $0.isEmpty } }
    var isGone: Bool { told.withLock { $0.contains(.gone) } }
    /// How often notices were lost: of each that another test has in the one watcher of all, too.
    var losses: Int { told.withLock { told in told.count { $0 == .lookAgain } } }
    func has(_ name: String) -> Bool {
      told.withLock { told in
        told.contains { if case .changed(let names) = $0 { names.contains(name) } else { false } }
      }
    }
  }

  private func make(_ name: String) throws -> OpenDirectory {
    try folder.descriptor.makeDirectory(name, mode: 0o700)
    return OpenDirectory(try folder.descriptor.open(name, [.readOnly, .directory]))
  }

  private func touch(_ name: String, in directory: OpenDirectory) throws {
    _ = try directory.descriptor.open(name, [.writeOnly, .create], mode: 0o600)
  }

  /// Makes a file, or makes it anew.
  private func make(file name: String, in directory: OpenDirectory) throws {
    try? directory.descriptor.unlink(name)
    try touch(name, in: directory)
  }

  /// Makes a change, once more if the word of it was lost, until its name is told.
  private func waitUntilTold(
    _ log: Log, of name: String, _ change: () throws -> Void
  ) throws {
    try change()
    var losses = log.losses
    try eventually("it is told of '\(name)'") {
      if log.has(name) { return true }
      let now = log.losses
      if now > losses { try change() }
      losses = now
      return false
    }
  }

  /// A thread whose calls of inotify take their time.
  private final class Slow {
    private let monitor = Monitor((hasBegun: false, isOver: false))
    private var thread: Thread?

    init(
      _ moment: FaultRule.Moment, for milliseconds: Int = 500,
      _ body: @escaping @Sendable () throws -> Void
    ) throws {
      let monitor = monitor
      thread = try Thread("slow") {
        let rule = FaultRule(.inotifyAdd, moment: moment, .delay(milliseconds: milliseconds))
        _ = try? FaultPoints.with([rule]) {
          monitor.signal { $0.hasBegun = true }
          try body()
        }
        monitor.signal { $0.isOver = true }
      }
      let _: Void? = monitor.wait(until: .now + patience) { $0.hasBegun ? () : nil }
    }

    var isOver: Bool { monitor.withLock { $0.isOver } }

    func join() {
      thread?.join()
      thread = nil
    }
  }

  /// Two who listen in one directory; for the second inotify is asked slowly.
  private struct Two {
    let directory: OpenDirectory
    let first = Log()
    let second = Log()
    let early: Watch
    let slow: Slow

    init(in directory: OpenDirectory, for milliseconds: Int) throws {
      let (first, second) = (first, second)
      self.directory = directory
      early = try Watcher.shared.watch(directory.descriptor, .movedTo) { first.note($0) }
      slow = try Slow(.after, for: milliseconds) {
        _ = try Watcher.shared.watch(directory.descriptor, .created) { second.note($0) }
      }
    }
  }

  private func listenTwice(_ milliseconds: Int) throws -> Two {
    let two = try Two(in: make("a\(milliseconds)"), for: milliseconds)
    try waitUntilAsked(two.slow, two.directory, two.first)
    return two
  }

  /// Tries with longer and longer delays, until what is done meanwhile is done in time.
  private func inTime(_ body: (_ milliseconds: Int) throws -> Bool) throws {
    for milliseconds in [500, 2000, 8000, 32_000] {
      if try body(milliseconds) { return }
    }
    Issue.record("the machine is too slow")
  }

  /// What is created is told to the one that does not ask for it only once the slow one's call, for
  /// the same directory, was made.
  private func waitUntilAsked(_ slow: Slow, _ directory: OpenDirectory, _ other: Log) throws {
    try eventually("inotify was asked") {
      try touch("\(Clocks.sinceBoot)", in: directory)
      return slow.isOver || !other.isEmpty
    }
  }

  @Test func whoeverIsKeptWaitingHoldsUpNobodyElse() throws {
    try inTime { milliseconds in
      let (a, b) = (try make("a\(milliseconds)"), try make("b\(milliseconds)"))
      let (first, second) = (Log(), Log())
      let early = try Watcher.shared.watch(b.descriptor, .created, keeping: b) { second.note($0) }
      let slow = try Slow(.before, for: milliseconds) {
        _ = try Watcher.shared.watch(a.descriptor, .created) { first.note($0) }
      }
      try waitUntilTold(second, of: "1") { try make(file: "1", in: b) }
      let late = try Watcher.shared.watch(b.descriptor, .movedTo) { _ in }
      late.stop()
      early.resume()
      early.stop()
      // All that while it waited.
      let isInTime = !slow.isOver
      slow.join()
      try waitUntilTold(first, of: "2") { try make(file: "2", in: a) }
      return isInTime
    }
  }

  /// Both have one number; the one that has it alone already must not give it back.
  @Test func aNumberThatSomebodyIsAboutToHaveIsKept() throws {
    try inTime { milliseconds in
      let two = try listenTwice(milliseconds)
      two.early.stop()
      let isInTime = !two.slow.isOver
      two.slow.join()
      try waitUntilTold(two.second, of: "late") { try make(file: "late", in: two.directory) }
      return isInTime
    }
  }

  /// While a directory is open the kernel tells nothing of its end, so the test says it.
  @Test func anEndThatIsToldBeforeTheNumberIsKnownIsNotMissed() throws {
    try inTime { milliseconds in
      let two = try listenTwice(milliseconds)
      let number = two.early.number.load(ordering: .relaxed)
      Watcher.shared.state.withLock { $0.calls.hear(endOf: number) }
      let isInTime = !two.slow.isOver
      two.slow.join()
      if isInTime { #expect(two.second.isGone) }
      two.early.stop()
      return isInTime
    }
  }

  @Test func whoeverListensWhileAnotherPausesHears() throws {
    let directory = try make("a")
    let (first, second) = (Log(), Log())
    let early = try Watcher.shared.watch(directory.descriptor, .movedTo, keeping: directory) {
      first.note($0)
    }
    let isPaused = Monitor(false)
    let slow = try Slow(.before) { isPaused.withLock { $0 = early.pause() } }
    let late = try Watcher.shared.watch(directory.descriptor, .created) { second.note($0) }
    slow.join()
    try waitUntilTold(second, of: "1") { try make(file: "1", in: directory) }
    late.stop()
    early.resume()
    try waitUntilTold(first, of: "2") {
      try make(file: "1", in: directory)
      try directory.descriptor.rename("1", to: directory.descriptor, "2")
    }
    early.stop()
  }

  /// Nobody begins a pause that the one who registers may be deaf by.
  @Test func nobodyPausesWhileAnotherRegisters() throws {
    let (a, b) = (try make("a"), try make("b"))
    let early = try Watcher.shared.watch(b.descriptor, .movedTo, keeping: b) { _ in }
    let first = Log()
    let other = try Watcher.shared.watch(a.descriptor, .movedTo) { first.note($0) }
    let slow = try Slow(.after) {
      _ = try Watcher.shared.watch(a.descriptor, .created) { _ in }
    }
    try waitUntilAsked(slow, a, first)
    #expect(!early.pause() || slow.isOver)
    slow.join()
    // Others of this process may register.
    try eventually("it pauses") { early.pause() }
    early.stop()
    other.stop()
  }
}
