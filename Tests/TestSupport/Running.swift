package import WormholeSyscalls

/// The output, errors and status of a program that has ended.
package struct ProcessOutcome: Sendable {
  package let status: ChildStatus
  package let output: String
  package let errors: String
}

/// A program that a test has started; killed when the test releases the object.
///
/// The program ignores no signal, even if the tests do: a shell's background jobs ignore SIGINT.
package final class Running: Sendable {
  package let child: Child
  private let name: String
  private let folder: TemporaryDirectory
  private let ended = Monitor<ChildStatus?>(nil)
  private let waiter: Thread

  /// Starts a program, its output and errors going to files that ``waitForStatus(within:)`` reads.
  ///
  /// - Parameters:
  ///   - environment: variables beside, or instead of, this process's environment: `NAME=value`.
  ///   - input: the program's standard input.
  package init(
    _ program: String, _ arguments: [String] = [], environment: [String] = [],
    input: String = ""
  ) throws {
    name = ([program] + arguments).joined(separator: " ")
    folder = try TemporaryDirectory()
    try folder.write(input, to: "input")
    let reading = try folder.descriptor.open("input", [.readOnly])
    let output = try folder.descriptor.open("output", [.writeOnly, .create, .append], mode: 0o600)
    let errors = try folder.descriptor.open("errors", [.writeOnly, .create, .append], mode: 0o600)
    let child = try Child.spawn(
      program, arguments, environment: Processes.environment(setting: environment),
      input: reading.rawValue,
      output: output.rawValue, error: errors.rawValue, resetsSignals: true)
    self.child = child
    waiter = try Thread("waiter") { [ended] in
      let status = try? child.wait()
      ended.signal { $0 = status ?? .exited(-1) }
    }
  }

  deinit {
    if ended.withLock({ $0 }) == nil { try? child.send(.kill) }
    waiter.join()
  }

  /// The text that the program has written to standard output so far.
  package var output: String { get throws { try folder.read("output") } }

  /// The text that the program has written to standard error so far.
  package var errors: String { get throws { try folder.read("errors") } }

  /// Waits until the program has ended; kills it and throws if it takes too long.
  ///
  /// - Parameter time: how long the program may go without progress. It makes progress if the
  ///   program, or a child of it, has a processor for a hundredth of the time. Ten times as long is
  ///   too long even with progress.
  package func outcome(within time: Duration = patience) throws -> ProcessOutcome {
    var ticks = 0
    for _ in 1...10 {
      if let status = ended.wait(within: time, { $0 }) {
        return ProcessOutcome(status: status, output: try output, errors: try errors)
      }
      let now = Machine.ticks(of: child.process)
      // A tick is a hundredth of a second.
      guard Double(now - ticks) > time / .seconds(1) else { break }
      ticks = now
    }
    try? child.send(.kill)
    throw TooLate(
      description: "'\(name)' did not end within \(time); it wrote: \(try output) \(try errors)")
  }

  /// Whether it has ended, however.
  package var hasEnded: Bool { ended.withLock { $0 } != nil }

  /// Waits until the program is stopped, as by SIGSTOP.
  package func waitUntilStopped(within time: Duration = patience) throws {
    try eventually("'\(name)' stops", within: time) {
      try Processes.isStopped(child.process)
    }
  }
}

extension Running {
  /// Resumes the program until it has ended: it may stop more than once, as an update may run
  /// again.
  package func waitOrGo() throws -> String {
    try eventually("it ends") {
      if try Processes.isStopped(child.process) { try child.send(.go) }
      return hasEnded
    }
    return try outcome().output
  }
}

/// Runs a program to its end.
package func run(
  _ program: String, _ arguments: [String] = [], environment: [String] = [],
  input: String = "", within time: Duration = patience
) throws -> ProcessOutcome {
  try Running(program, arguments, environment: environment, input: input).outcome(within: time)
}
