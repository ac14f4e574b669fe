import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The app of one side: a child process of this process.
///
/// No signal reaches any other process: the ID of a process stays its own until its end is
/// collected, which happens under the lock that each signal takes.
final class SideProcess: Sendable {
  let role: Role
  private let arguments: [String]
  private let heard: @Sendable (PropertyListValue) -> Void
  private let changed: @Sendable () -> Void
  private let state = Monitor(State())

  private struct State {
    var child: Child?
    var keys: SharedPipe?
    var isStopped = false
    /// Whether the child was killed, and its end is not collected yet.
    var isKilled = false
    var isOver = false
    /// The latest line of the app, visible even after the end of the app.
    var feed: PropertyListValue = [:]
  }

  enum Condition: String { case running, stopped, ended }

  /// - Parameters:
  ///   - heard: called with each line of the feed, as soon as it has arrived.
  ///   - changed: called when the feed or the condition has changed.
  init(
    _ role: Role, _ container: String, for customer: String,
    heard: @escaping @Sendable (PropertyListValue) -> Void,
    changed: @escaping @Sendable () -> Void
  ) {
    self.role = role
    arguments = [
      "--container", container, "--as", role.rawValue, "--for", customer, "run", "--feed",
    ]
    (self.heard, self.changed) = (heard, changed)
  }

  var feed: PropertyListValue { state.withLock { $0.feed } }

  var process: Int32? { state.withLock { $0.child?.process } }

  var condition: Condition {
    state.withLock { $0.child == nil ? .ended : $0.isStopped ? .stopped : .running }
  }

  /// Starts the process, or resumes it if it is stopped.
  ///
  /// A process that was killed is awaited first, because nothing would resume it.
  func start() throws(WormholeError) {
    let _: Void? = state.wait(until: .now + .seconds(5)) { $0.isKilled ? nil : () }
    try naming("start the app of", role.rawValue) { () throws(Errno) in
      try state.withLock { state throws(Errno) in
        guard !state.isOver else { return }
        guard !state.isKilled else { throw Errno.timedOut }
        if let child = state.child {
          try child.send(.go)
          state.isStopped = false
          return
        }
        let (keys, words) = (try SharedPipe(), try SharedPipe())
        let child = try Child.spawn(
          try Processes.ownProgram(), arguments, input: keys.reading, output: words.writing)
        keys.closeReading()
        words.closeWriting()
        do throws(Errno) {
          try Thread("side") { self.read(words, child) }.detach()
        } catch {
          // Nothing would read the feed of the child, or collect its end.
          try? child.send(.kill)
          _ = try? child.wait()
          throw error
        }
        (state.child, state.keys, state.isStopped) = (child, keys, false)
      }
    }
    changed()
  }

  func stop() { send(.stop) }

  func kill() { send(.kill) }

  private func send(_ signal: Processes.Signal) {
    state.withLock { state in
      guard let child = state.child, (try? child.send(signal)) != nil else { return }
      if signal == .stop { state.isStopped = true }
      if signal == .kill { state.isKilled = true }
    }
    changed()
  }

  /// Ends the process for good.
  func close() {
    state.withLock { state in
      state.isOver = true
      try? state.child?.send(.kill)
    }
  }

  /// Types a line into the app; returns false if it does not run.
  func type(_ line: String) -> Bool {
    let keys = state.withLock { $0.isStopped || $0.isKilled || $0.child == nil ? nil : $0.keys }
    guard let keys else { return false }
    return (try? keys.write(Array((line + "\n").utf8))) != nil
  }

  /// Reads the feed until the process has ended.
  private func read(_ words: SharedPipe, _ child: Child) {
    var rest: [UInt8] = []
    while let more = try? words.collect(limit: 0), !more.isEmpty {
      rest += more
      guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
      for line in rest[..<end].split(separator: UInt8(ascii: "\n")) {
        guard let feed = try? JSONPropertyList.decode(Array(line)) else { continue }
        state.withLock { $0.feed = feed }
        heard(feed)
        changed()
      }
      rest.removeSubrange(...end)
    }
    try? child.waitUntilEnded()
    state.signal { state in
      _ = try? child.wait()
      (state.child, state.keys) = (nil, nil)
      (state.isStopped, state.isKilled) = (false, false)
    }
    changed()
  }
}
