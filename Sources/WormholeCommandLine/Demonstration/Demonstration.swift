package import WormholeContainerStorage
package import WormholeSyscalls

/// The stage of a demonstration: a directory of its own below TMPDIR, and the processes that take
/// part.
///
/// At the end, whether the last line or a signal ends the demonstration, its processes are killed
/// and the directory is removed. A signal may arrive between any two steps, while other threads
/// continue: so each step that would leave a process or a file happens completely before the end,
/// or not at all.
package final class Demonstration: Sendable {
  package let path: String
  private let state = Monitor(State())

  private struct State {
    var children: [Child] = []
    var isOver = false
  }

  package init(_ name: String) {
    // An empty variable counts as not set.
    let parent = Processes.environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    path = parent + "/\(name)-demo-\(Processes.current)-\(Clocks.sinceBoot)"
  }

  /// Creates the directory, plays, and cleans up.
  ///
  /// - Parameters:
  ///   - prepare: creates the initial content of the directory; no signal interrupts it.
  ///   - play: receives the result of `prepare`.
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
    try Descriptor.open(path: path, .readOnlyDirectory)
  }

  /// Runs the body; an error states the failed operation and the directory.
  package func attempt<Result>(_ body: () throws(Errno) -> Result) throws(WormholeError) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw WormholeError(proc: error, "show the demonstration in", path)
    }
  }

  package func pause(_ time: Duration) {
    Thread.pause(time)
  }

  // MARK: Processes

  /// Starts a process; a signal arrives either before the start, or finds the process.
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

  /// Waits for the end of a child; until its status is collected, no other process gets its process
  /// ID.
  package func end(_ child: Child) throws(WormholeError) -> ChildStatus {
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

  /// Runs once and completely, whether a signal or the last line ends the demonstration, or both at
  /// once.
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
    // The descendants of a killed process may still write for a moment.
    let deadline = Instant.now + .seconds(2)
    repeat {
      let failure = Errno.of { () throws(Errno) in try removeTree(place.name, in: parent, depth: 9)
      }
      if failure == nil { return }
    } while Instant.now < deadline
  }
}
