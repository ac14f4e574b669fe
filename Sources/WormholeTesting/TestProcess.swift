public import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A program that a test has started, and can kill, suspend and wait for.
///
/// The program finds the test's container in `WORMHOLE_CONTAINER`, and uses the groups of the test;
/// see ``TestGroups``. When the test releases this object, the program is killed.
///
/// The program's standard output is a terminal, so that each line arrives as soon as it is printed,
/// even if the program is killed afterwards; standard error is a file.
public final class TestProcess: Sendable {
  /// How a process has ended.
  @nonexhaustive
  public enum ExitStatus: Hashable, Sendable {
    /// The process exited with this status.
    case exited(Int32)
    /// The signal of this number ended the process.
    case signalled(Int32)
  }

  /// The process ID.
  public var processID: Int32 { child.process }

  private let name: String
  private let child: Child
  private let folder: TemporaryContainer
  /// The terminal of the program; nil if its standard output is a file.
  private let terminal: TerminalOutput?
  private let ended = Monitor<ExitStatus?>(nil)
  private let waiter: Thread

  /// Starts a program.
  ///
  /// The program ignores no signal, also if the test does, as a shell's background jobs do.
  ///
  /// - Parameters:
  ///   - program: its path, or the name of a program that was built together with the tests, or of
  ///     a program in `PATH`.
  ///   - arguments: the arguments of the program.
  ///   - container: the container for `WORMHOLE_CONTAINER`; nil leaves the variable unchanged.
  ///   - link: the link between the program's members and all others, if the program calls
  ///     `Options.useLinkOfTest()`; nil for no link.
  ///   - environment: variables that are added to this process's environment, or replace its
  ///     variables.
  ///   - input: the text on the program's standard input.
  ///   - usesTerminal: whether the program's standard output is a terminal: without echo, with line
  ///     breaks unchanged, and with the variables `TERM=dumb` and `NO_COLOR=1` unless `environment`
  ///     contains others. False for a file, to which the libraries of most languages write only
  ///     once their buffer is full or the program exits.
  public init(
    _ program: String, _ arguments: [String] = [], in container: TemporaryContainer?,
    link: Link? = nil, environment: [String: String] = [:], input: String = "",
    terminal usesTerminal: Bool = true
  ) throws(WormholeError) {
    name = ([program] + arguments).joined(separator: " ")
    folder = try TemporaryContainer()
    var settings = environment
    let groups = try TestGroups.use()
    settings["WORMHOLE_ROOT"] = settings["WORMHOLE_ROOT"] ?? groups
    if usesTerminal {
      settings["TERM"] = settings["TERM"] ?? "dumb"
      settings["NO_COLOR"] = settings["NO_COLOR"] ?? "1"
    }
    if let link { settings.merge(try link.environment()) { own, _ in own } }
    if let container {
      settings["WORMHOLE_CONTAINER"] = container.path
      settings["WORMHOLE_GROUP"] = ""
    }
    let all = Processes.environment(setting: settings.map { "\($0.key)=\($0.value)" })
    let pseudoTerminal = try usesTerminal ? Self.terminal(for: program) : nil
    do throws(Errno) {
      let files = try Descriptor.open(path: folder.directory, .readOnlyDirectory)
      try files.open("input", .writeOnlyNew, mode: 0o600).writeFully(Array(input.utf8))
      let reading = try files.open("input", [.readOnly])
      let output = try files.open("output", [.writeOnly, .create, .append], mode: 0o600)
      let errors = try files.open("errors", [.writeOnly, .create, .append], mode: 0o600)
      var terminal: TerminalOutput?
      if let pseudoTerminal {
        terminal = try TerminalOutput(pseudoTerminal, copyingTo: output.duplicate())
      }
      let child = try Child.spawn(
        Self.path(of: program), arguments,
        environment: all, input: reading.rawValue,
        output: pseudoTerminal?.programEnd ?? output.rawValue, error: errors.rawValue,
        resetsSignals: true)
      pseudoTerminal?.closeProgramEnd()
      self.child = child
      self.terminal = terminal
      do throws(Errno) {
        waiter = try Self.wait(for: child, terminal, ended)
      } catch {
        // Without the thread nothing would kill the program, or wait for its end.
        try? child.send(.kill)
        _ = try? child.wait()
        throw error
      }
    } catch {
      throw WormholeError(error, "start program", program)
    }
  }

  private static func wait(
    for child: Child, _ terminal: TerminalOutput?, _ ended: Monitor<ExitStatus?>
  ) throws(Errno) -> Thread {
    try Thread("test process") {
      // Until the output is complete, no other process gets the process ID.
      try? child.waitUntilEnded()
      terminal?.drain()
      // The status is collected under the lock that each signal takes: no signal reaches another
      // process that gets the process ID.
      ended.signal { ended in
        let ending: ExitStatus =
          switch try? child.wait() {
          case .exited(let status): .exited(status)
          case .signalled(let signal): .signalled(signal)
          case nil: .exited(-1)
          }
        ended = ending
      }
    }
  }

  deinit {
    try? kill()
    waiter.join()
  }

  // MARK: Signals

  /// Kills the process, as `kill -9` does; does nothing if the process has ended.
  public func kill() throws(WormholeError) { try send(.kill, "kill") }

  /// Asks the process to end, as `kill` does; does nothing if the process has ended.
  public func terminate() throws(WormholeError) { try send(.terminate, "terminate") }

  /// Suspends the process, and returns once the process is suspended.
  public func stop() throws {
    try send(.stop, "stop")
    let process = child.process
    try eventually("'\(name)' to stop") {
      hasEnded || ProcessStatus(of: process)?.isStopped == true
    }
  }

  /// Resumes the process after a suspension.
  public func resume() throws(WormholeError) { try send(.go, "resume") }

  private func send(_ signal: Processes.Signal, _ verb: String) throws(WormholeError) {
    do throws(Errno) {
      try ended.withLock { ended throws(Errno) in
        // Another process may have the process ID once the process has ended.
        guard ended == nil else { return }
        try child.send(signal)
      }
    } catch {
      guard error != .noSuchProcess else { return }
      throw WormholeError(error, verb + " program", name)
    }
  }

  // MARK: State and output

  /// Whether the process has ended.
  public var hasEnded: Bool { ended.withLock { $0 } != nil }

  /// The standard output so far.
  public var output: String {
    get throws(WormholeError) {
      if let failure = terminal?.failure {
        throw WormholeError(failure, "read the output of", name)
      }
      return try read("output")
    }
  }

  /// The standard error so far.
  public var standardError: String { get throws(WormholeError) { try read("errors") } }

  /// Waits until the process has ended; kills the process and throws when the time limit passes.
  public func exitStatus(within time: Duration = .seconds(30)) async throws -> ExitStatus {
    do {
      try await eventually("the end of '\(name)'", within: time) { hasEnded }
    } catch {
      try? kill()
      throw error
    }
    return ended.withLock { $0! }
  }

  /// Waits on this thread until the process has ended; kills the process and throws when the time
  /// limit passes.
  public func exitStatus(within time: Duration = .seconds(30)) throws -> ExitStatus {
    guard let ending = ended.wait(until: .now + time, { $0 }) else {
      try? kill()
      throw WormholeError(
        .timedOut, "wait for", "the end of '\(name)'",
        because: "the process did not end within \(time)")
    }
    return ending
  }

  /// Waits until the process has written a text to standard output.
  public func waitForOutput(_ text: String, within time: Duration = .seconds(30)) async throws {
    try await eventually("'\(name)' to write '\(text)'", within: time) { try hasSaid(text) }
  }

  /// Waits on this thread until the process has written a text to standard output.
  public func waitForOutput(_ text: String, within time: Duration = .seconds(30)) throws {
    try eventually("'\(name)' to write '\(text)'", within: time) { try hasSaid(text) }
  }

  private func hasSaid(_ text: String) throws(WormholeError) -> Bool {
    let isOver = hasEnded
    if try output.contains(text) { return true }
    guard isOver else { return false }
    throw WormholeError(
      .notFound, "wait for", "'\(name)' to write '\(text)'",
      because: "the process ended with the output: \(try output)\(try standardError)")
  }

  private func read(_ file: String) throws(WormholeError) -> String {
    try naming("read the output of", name) { () throws(Errno) in
      let folder = try Descriptor.open(path: folder.directory, .readOnlyDirectory)
      return String(decoding: try contents(of: folder.open(file, [.readOnly])), as: UTF8.self)
    }
  }

  // MARK: Programs

  private static func terminal(for program: String) throws(WormholeError) -> PseudoTerminal {
    do throws(Errno) {
      return try PseudoTerminal(isForOutput: true)
    } catch {
      let failure = WormholeError(error, "start program", program)
      throw WormholeError(
        failure.code, failure.operation, program,
        because: "there is no terminal for its output: \(failure.reason)",
        hint: failure.hint ?? "pass 'terminal: false', or mount /dev/pts", errno: error)
    }
  }

  private static func path(of program: String) -> String {
    guard !program.utf8.contains(UInt8(ascii: "/")) else { return program }
    for folder in built {
      guard let directory = try? Descriptor.open(path: folder, [.path, .directory]),
        let status = try? directory.status(of: program), status.kind == .regular
      else { continue }
      return folder + "/" + program
    }
    return program
  }

  /// The directories with programs built together with the tests: beside the program that runs the
  /// tests, or beside the bundle given to that program.
  private static let built: [String] = {
    var programs = CommandLine.arguments.filter { $0.contains(".xctest") }
    // `/proc/self` is a link itself, so the path contains the process ID.
    if let process = try? Descriptor.open(
      path: "/proc/\(Processes.current)", .readOnlyDirectory),
      let own = try? process.readSymbolicLink("exe")
    {
      programs.insert(String(decoding: own, as: UTF8.self), at: 0)
    }
    return programs.compactMap { program in
      program.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(program[..<$0]) }
    }
  }()
}

private func contents(of file: borrowing Descriptor) throws(Errno) -> [UInt8] {
  var bytes: [UInt8] = []
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
  defer { buffer.deallocate() }
  while true {
    let count = try file.readFully(into: buffer, at: bytes.count)
    if count == 0 { return bytes }
    bytes.append(contentsOf: buffer[..<count])
  }
}
