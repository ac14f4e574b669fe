import Synchronization
import TestSupport
import TestTraits
import Testing
@testable import WormholeContainerStorage
import WormholeSyscalls

/// Calls of other threads while the file system delays a thread inside an inotify call.
@Suite(.serialized, .blocking) struct WatcherCallsTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private final class Log: Sendable {
    private let told = Monitor<[WatchSignal]>([])
    func note(_ signal: WatchSignal) { told.withLock { $0.append(signal) } }
    var isEmpty: Bool { told.withLock { $0.isEmpty } }
    var isGone: Bool { told.withLock { $0.contains(.gone) } }
    /// How often notices were lost.
    ///
    /// Losses that another test causes in the shared watcher count as well.
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

  /// Makes a file, or replaces it by a new file.
  private func make(file name: String, in directory: OpenDirectory) throws {
    try? directory.descriptor.unlink(name)
    try touch(name, in: directory)
  }

  /// Makes a change, once more after lost notices, until the listener is notified of the name.
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

  /// Two listeners in one directory; for the second listener, inotify is slow.
  private struct Two {
    let directory: OpenDirectory
    let first = Log()
    let second = Log()
    let early: DirectoryWatch
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

  /// Tries with longer and longer delays, until the concurrent calls are made in time.
  private func inTime(_ body: (_ milliseconds: Int) throws -> Bool) throws {
    for milliseconds in [500, 2000, 8000, 32_000] {
      if try body(milliseconds) { return }
    }
    Issue.record("the machine is too slow")
  }

  /// The first listener does not ask for creations.
  ///
  /// It is notified of a created file only after the slow thread's call of inotify for the same
  /// directory.
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

  /// Both watches have one number; the early watch, which has the number alone so far, must not
  /// return it.
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

  /// While a directory is open the kernel does not report its end, so the test reports it.
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

  /// The kernel's watch would count against the limit of the user as long as the process has any
  /// listener.
  @Test func aListenerThatCannotResumeLeavesNoWatch() throws {
    let (a, b) = (try make("a"), try make("b"))
    // This listener keeps the instance open.
    let other = try Watcher.shared.watch(b.descriptor, .movedTo) { _ in }
    let early = try Watcher.shared.watch(a.descriptor, .movedTo, keeping: a) { _ in }
    let number = early.number.load(ordering: .relaxed)
    #expect(try isWatched(number))
    try eventually("it pauses") { early.pause() }
    FaultPoints.with([FaultRule(.inotifyAdd, .fail(.noSpace))]) { early.resume() }
    early.stop()
    try eventually("the kernel's watch has ended") { try !isWatched(number) }
    other.stop()
  }

  /// Whether the kernel has a watch of this number for the process.
  private func isWatched(_ number: CInt) throws -> Bool {
    let instance = try #require(Watcher.shared.state.withLock { $0.instance })
    let path = "/proc/self/fdinfo/\(instance.descriptor.rawValue)"
    let text = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
    return text.contains("inotify wd:\(String(number, radix: 16)) ")
  }

  /// The kernel watches the directory for its end alone then.
  @Test func aListenerThatCannotResumeIsPolled() throws {
    let (directory, log) = (try make("a"), Log())
    let early = try Watcher.shared.watch(directory.descriptor, .movedTo, keeping: directory) {
      log.note($0)
    }
    // Other threads of this process may be registering.
    try eventually("it pauses") { early.pause() }
    FaultPoints.with([FaultRule(.inotifyAdd, .fail(.noSpace))]) { early.resume() }
    let losses = log.losses
    try eventually("it is told to look") { log.losses > losses }
    early.stop()
  }

  /// A listener that inotify cannot serve at first, in a watcher of its own that makes no check
  /// until the test asks for one.
  private struct PolledListener {
    let watcher = Watcher()
    let log = Log()
    let directory: OpenDirectory
    let watch: DirectoryWatch

    init(in directory: OpenDirectory) throws {
      let (watcher, log) = (watcher, log)
      var polled: DirectoryWatch?
      try FaultPoints.with([FaultRule(.inotifyAdd, .fail(.noSpace))]) {
        polled = try watcher.watch(directory.descriptor, .created, keeping: directory) {
          log.note($0)
        }
      }
      self.directory = directory
      watch = try #require(polled)
      watcher.state.withLock { state in
        state.nextPoll = Instant.distantFuture
        state.nextUpgrade = Instant.distantFuture
      }
    }

    /// Registers the listener with inotify, as the watcher does every few seconds.
    func upgrade() throws {
      try #require(watch.isPolling)
      watcher.state.withLock { $0.calls.beginRegistering() }
      let reason = watcher.register(watch, directory.descriptor, isPolled: true)
      try #require(reason == nil && !watch.isPolling)
    }

    func check() {
      watcher.state.withLock { state in
        state.nextPoll = Instant.now
        state.crew?.wakeUp.raise()
      }
    }
  }

  /// Between the last check and the registration, the directory may have changed.
  @Test func aListenerThatIsServedFromNowOnChecksOnceMore() throws {
    let listener = try PolledListener(in: make("a"))
    let losses = listener.log.losses
    try listener.upgrade()
    listener.check()
    #expect(throws: Never.self) {
      try eventually("it is told to look") { listener.log.losses > losses }
    }
    try eventually("it is polled no more") {
      listener.watcher.state.withLock { $0.polled.isEmpty }
    }
    listener.watch.stop()
  }

  /// The pause comes before the last check as a polled listener.
  @Test func aListenerThatWasPolledAndCannotResumeIsPolledAgain() throws {
    let listener = try PolledListener(in: make("a"))
    try listener.upgrade()
    try #require(listener.watch.pause())
    FaultPoints.with([FaultRule(.inotifyAdd, .fail(.noSpace))]) { listener.watch.resume() }
    #expect(listener.watch.isPolling)
    let losses = listener.log.losses
    #expect(throws: Never.self) {
      try eventually("it is told to look, again and again") {
        listener.log.losses >= losses + 3
      }
    }
    listener.watch.stop()
  }

  /// No pause begins that would make a registering listener miss notices.
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
    // Other threads of this process may be registering.
    try eventually("it pauses") { early.pause() }
    early.stop()
    other.stop()
  }
}
