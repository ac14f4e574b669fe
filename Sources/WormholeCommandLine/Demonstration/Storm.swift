internal import WormholeContainerStorage
package import WormholeSyscalls

/// Many processes of a demonstration, four at a time: one in four is killed at a random moment, and
/// one in twenty is suspended for longer than other processes wait for it.
///
/// On a terminal, a bar shows how far the storm is, with the numbers of processes that confirmed
/// their change, were killed, and were suspended.
package final class Storm: Sendable {
  private let stage: Demonstration
  private let count: Int
  private let confirmed: String
  private let isShown: Bool
  private let state = Monitor(State())

  private struct State {
    var next = 0
    var ended: [StormOutcome] = []
    var killed = 0
    var stopped = 0
    var failure: (any Error)?
  }

  /// - Parameter confirmed: what the bar calls a process that confirmed its change, as in "sold".
  package init(_ stage: Demonstration, of count: Int, confirmed: String, _ output: Output) {
    self.stage = stage
    self.count = count
    self.confirmed = confirmed
    isShown = !output.isQuiet && StandardStream.error.isTerminal
  }

  /// Runs all processes, and returns how each ended.
  ///
  /// - Parameter spawn: starts the process of a number, which writes to the given descriptor, and
  ///   exits with 0 or 1 unless it is killed.
  package func run(_ spawn: @escaping @Sendable (Int, CInt) throws -> Child) throws
    -> [StormOutcome]
  {
    var threads: [Thread] = []
    do {
      for _ in 0..<4 { threads.append(try start(spawn)) }
    } catch {
      // The threads before end with their present process.
      state.withLock { $0.failure = $0.failure ?? error }
    }
    for thread in threads { thread.join() }
    if isShown { try? StandardStream.error.write("\r\u{1B}[K") }
    return try state.withLock { state in
      if let failure = state.failure { throw failure }
      return state.ended
    }
  }

  private func start(
    _ spawn: @escaping @Sendable (Int, CInt) throws -> Child
  ) throws(WormholeError) -> Thread {
    try stage.attempt { () throws(Errno) in
      try Thread("storm") {
        var random = SystemRandomNumberGenerator()
        while let number = self.begin() {
          do {
            try self.run(number, spawn, &random)
          } catch {
            self.state.withLock { $0.failure = $0.failure ?? error }
          }
          self.show()
        }
      }
    }
  }

  private func begin() -> Int? {
    state.withLock { state in
      guard state.next < count, state.failure == nil else { return nil }
      state.next += 1
      return state.next
    }
  }

  private func run(
    _ number: Int, _ spawn: (Int, CInt) throws -> Child, _ random: inout SystemRandomNumberGenerator
  ) throws {
    let conduit = try stage.attempt { () throws(Errno) in try SharedPipe() }
    let child = try spawn(number, conduit.writing)
    conduit.closeWriting()
    let fate = Int.random(in: 0..<20, using: &random)
    if fate < 6 { stage.pause(.microseconds(Int.random(in: 0..<40_000, using: &random))) }
    if fate < 5 {
      try? child.send(.kill)
      state.withLock { $0.killed += 1 }
    } else if fate == 5 {
      try? child.send(.stop)
      state.withLock { $0.stopped += 1 }
      show()
      stage.pause(.milliseconds(1200))
      try? child.send(.go)
    }
    let output = try stage.attempt { () throws(Errno) in try conduit.collect(limit: 4096) }
    let status = try stage.end(child)
    state.withLock { state in
      state.ended.append(
        StormOutcome(number: number, output: String(decoding: output, as: UTF8.self)))
      if status != .exited(0), status != .exited(1), status != .signalled(9) {
        state.failure =
          state.failure
          ?? Failure(
            .software, "system",
            "cannot show the demonstration: a process ended with \(status.code)")
      }
    }
  }

  /// Draws the bar.
  private func show() {
    guard isShown else { return }
    // Under the lock, so that no thread draws an earlier state over a later one.
    state.withLock { state in
      let width = 24
      let full = state.ended.count * width / count
      let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
      let sure = state.ended.count { $0.isConfirmed }
      try? StandardStream.error.write(
        "\r\(bar) \(state.ended.count) of \(count): \(sure) \(confirmed), "
          + "\(state.killed) killed, \(state.stopped) stopped\u{1B}[K")
    }
  }
}

/// How a process ended.
package struct StormOutcome: Sendable {
  package let number: Int
  package let output: String
  /// An output that ends in a line feed is complete: what it states is permanent.
  package var isConfirmed: Bool { output.last == "\n" }
}
