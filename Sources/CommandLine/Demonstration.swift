package import SharedContainer
package import Syscalls

/// Where a demonstration takes place: a directory of its own below TMPDIR, and the processes that
/// play in it.
///
/// When it is over, whether its last line or a signal is the reason, its processes are ended and
/// the directory is removed. A signal may come between any two steps, while other threads go on:
/// so each step that would leave something happens as a whole before the end, or not at all.
package final class Demonstration: Sendable {
  package let path: String
  private let state = Monitor(State())

  private struct State {
    var children: [Child] = []
    var isOver = false
  }

  package init(_ name: String) {
    // Set to nothing is not set.
    let parent = Processes.environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    path = parent + "/\(name)-demo-\(Processes.current)-\(Clocks.sinceBoot)"
  }

  /// Makes the directory, plays, and tidies up.
  ///
  /// - Parameters:
  ///   - prepare: lays out what the directory is to hold; no signal comes in between.
  ///   - play: gets what that has made.
  package func run<Made>(_ prepare: () throws -> Made, _ play: (Made) throws -> Void) throws {
    try Interruption.prepare { self.close() }
    defer { close() }
    let made = try state.withLock { state in
      try attempt { () throws(Errno) in
        try Self.check(state)
        try Descriptor.makeDirectory(path: path, mode: 0o700)
      }
      return try prepare()
    }
    try play(made)
  }

  package func directory() throws(Errno) -> Descriptor {
    try Descriptor.open(path: path, [.readOnly, .directory])
  }

  /// An error that tells what failed, and where.
  package func attempt<Result>(_ body: () throws(Errno) -> Result) throws(WormholeError) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw WormholeError(proc: error, "show the demonstration in", path)
    }
  }

  package func pause(_ time: Duration) {
    let _: Void? = Monitor(()).wait(until: .now + time) { _ in nil }
  }

  // MARK: Processes

  /// Starts a process; a signal finds it, or comes before it.
  package func start(_ body: () throws(Errno) -> Child) throws(WormholeError) -> Child {
    try attempt { () throws(Errno) in
      try state.withLock { state throws(Errno) in
        try Self.check(state)
        let child = try body()
        state.children.append(child)
        return child
      }
    }
  }

  /// Waits for its end; until it is asked for its status, its number is nobody else's.
  package func end(_ child: Child) throws(WormholeError) -> ExitStatus {
    try attempt { () throws(Errno) in
      try child.waitUntilEnded()
      return try state.withLock { state throws(Errno) in
        try Self.check(state)
        state.children.removeAll { $0.process == child.process }
        return try child.wait()
      }
    }
  }

  private static func check(_ state: State) throws(Errno) {
    if state.isOver { throw .interrupted }
  }

  // MARK: The end

  /// Once, and to its end, whether a signal or the last act is the reason, or both at a time.
  private func close() {
    state.withLock { state in
      guard !state.isOver else { return }
      state.isOver = true
      for child in state.children {
        try? child.send(.kill)
        _ = try? child.wait()
      }
      remove()
    }
  }

  private func remove() {
    let place = UserPath(path)
    guard let parent = try? place.openParent([.path, .directory]) else { return }
    // What a process that was killed had started may still be writing for a moment.
    let deadline = Instant.now + .seconds(2)
    repeat {
      let failure = Errno.of { () throws(Errno) in try removeTree(place.name, in: parent, depth: 9)
      }
      if failure == nil { return }
    } while Instant.now < deadline
  }
}
