package import Syscalls

/// What a program left behind when it ended.
package struct Outcome: Sendable {
  package let status: ExitStatus
  package let output: String
  package let errors: String
}

/// A program that a test has started; killed when the test lets go of it.
package final class Running: Sendable {
  package let child: Child
  private let name: String
  private let folder: TemporaryDirectory
  private let ended = Monitor<ExitStatus?>(nil)
  private let waiter: Thread

  /// Starts a program, its output and errors going to files that ``outcome(within:)`` reads.
  ///
  /// - Parameters:
  ///   - environment: what is set beside, or instead of, this process's environment: `NAME=value`.
  ///   - input: what it reads from standard input.
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
      output: output.rawValue, error: errors.rawValue)
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

  /// What it has written to standard output so far.
  package var output: String { get throws { try folder.read("output") } }

  /// What it has written to standard error so far.
  package var errors: String { get throws { try folder.read("errors") } }

  /// Waits until it has ended; kills it and throws when it takes too long.
  package func outcome(within time: Duration = patience) throws -> Outcome {
    let status = ended.wait(until: Instant.now + time) { $0 }
    guard let status else {
      try? child.send(.kill)
      throw TooLate(
        description: "'\(name)' did not end within \(time); it wrote: \(try output) \(try errors)")
    }
    return Outcome(status: status, output: try output, errors: try errors)
  }

  /// Whether it has ended, however.
  package var hasEnded: Bool { ended.withLock { $0 } != nil }

  /// Waits until it is stopped, as by SIGSTOP.
  package func waitUntilStopped(within time: Duration = patience) throws {
    try eventually("'\(name)' stops", within: time) {
      try Processes.isStopped(child.process)
    }
  }
}

extension Running {
  /// Lets it go on until it has ended: it may stop more than once, as an update may run again.
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
) throws -> Outcome {
  try Running(program, arguments, environment: environment, input: input).outcome(within: time)
}
