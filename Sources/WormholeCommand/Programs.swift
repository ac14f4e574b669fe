import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

/// Programs that the command runs for its caller.
enum Programs {
  /// The error of a program without a status, because the program was never started.
  struct NeverRan: FailureTold {
    let error: WormholeError
    var failure: Failure { Failure(error) }
  }

  /// Returns why values from other processes cannot be passed to a command in its environment; nil
  /// if they can.
  ///
  /// A message must not end the receiving command.
  static func problem(of settings: [String]) -> String? {
    settings.first { $0.utf8.contains(0) }.map { setting in
      let name = setting.parts(between: "=", most: 1, keepingEmpty: true)[0]
      return "no command can receive the value: \(name) contains a zero byte"
    }
  }

  /// Returns why a command could not be started, if the values to be passed were the reason.
  ///
  /// The values of present senders take a few kilobytes in the environment. If even these values
  /// are too much, the environment of this process is too large for any message.
  static func problem(of settings: [String], _ error: any Error) -> String? {
    guard let error = (error as? NeverRan)?.error, error.errno == Errno.argumentsTooLong.rawValue,
      settings.reduce(0, { $0 + $1.utf8.count }) > 16_384
    else { return nil }
    return "no command can receive the value: \(error.reason)"
  }

  /// Runs a program with this process's own input and output; returns its exit status.
  static func run(_ words: [String], _ settings: [String]) throws -> ChildStatus {
    try starting(words[0]) { () throws(Errno) in
      try Interruption.run { () throws(Errno) in
        try Child.spawn(
          words[0], Array(words.dropFirst()), environment: Processes.environment(setting: settings))
      }
    }
  }

  /// Runs a shell command with bytes on its standard input, and with this process's output.
  static func shell(_ line: String, input: [UInt8], _ settings: [String]) throws -> ChildStatus {
    try starting("sh") { () throws(Errno) in
      let given = try SharedPipe()
      return try feeding(given, input, to: line, settings, output: 1)
    }
  }

  /// Runs a shell command that converts a value.
  static func filter(
    _ line: String, input: [UInt8], _ settings: [String], limit: Int
  ) throws -> (status: ChildStatus, output: [UInt8]) {
    try starting("sh") { () throws(Errno) in try filter(line, input, settings, limit) }
  }

  private static func filter(
    _ line: String, _ input: [UInt8], _ settings: [String], _ limit: Int, error: SharedPipe? = nil,
    ended: () -> Void = {}
  ) throws(Errno) -> (status: ChildStatus, output: [UInt8]) {
    let (given, taken) = (try SharedPipe(), try SharedPipe())
    let collected = Monitor(Result<[UInt8], Errno>?.none)
    let collector = try Thread("output") {
      let bytes = Result { () throws(Errno) in try taken.collect(limit: limit) }
      taken.closeReading()
      collected.signal { $0 = bytes }
    }
    let result = Result { () throws(Errno) in
      try feeding(
        given, input, to: line, settings, output: taken.writing, error: error?.writing ?? 2
      ) {
        taken.closeWriting()
        error?.closeWriting()
      }
    }
    taken.closeWriting()
    ended()
    // A process that was asked to end does not wait for the child's own children, which may keep
    // the pipe open. The output of the child is in the pipe already.
    if Interruption.isAsked,
      collected.wait(until: .now + .milliseconds(100), { $0 == nil ? nil : true }) == nil
    {
      Interruption.endIfAsked()
    }
    collector.join()
    return (try result.get(), try collected.withLock { $0! }.get())
  }

  /// Runs a shell command that converts a value, and keeps the end of its error output, which also
  /// goes to this process's error output.
  ///
  /// If this process is asked to end during the call, it ends with its child and sends no reply:
  /// the requester is notified of the end of the process. The child's own children may keep the
  /// pipes open for any time.
  static func answer(
    _ line: String, input: [UInt8], _ settings: [String], limit: Int
  ) throws -> (status: ChildStatus, output: [UInt8], complaint: String) {
    try starting("sh") { () throws(Errno) in
      let errors = try SharedPipe()
      let tail = Monitor<[UInt8]>([])
      let isHeard = Monitor(false)
      let listener = try Thread("errors") {
        while let more = try? errors.collect(limit: 0), !more.isEmpty {
          try? StandardStream.error.write(more)
          tail.withLock { $0 = Array(($0 + more).suffix(4096)) }
        }
        errors.closeReading()
        isHeard.signal { $0 = true }
      }
      let result = Result { () throws(Errno) in
        try filter(line, input, settings, limit, error: errors) {
          guard Interruption.isAsked else { return }
          // The child's last error output is in the pipe already.
          errors.closeWriting()
          _ = isHeard.wait(until: .now + .milliseconds(100)) { $0 ? true : nil }
          Interruption.endIfAsked()
        }
      }
      errors.closeWriting()
      listener.join()
      let (status, output) = try result.get()
      let lines = tail.withLock { $0 }.split(separator: UInt8(ascii: "\n"))
      return (status, output, String(decoding: lines.last ?? [], as: UTF8.self))
    }
  }

  /// Runs a shell command to its end, even if it does not read all its input.
  private static func feeding(
    _ given: SharedPipe, _ input: [UInt8], to line: String, _ settings: [String], output: CInt,
    error: CInt = 2, _ started: () -> Void = {}
  ) throws(Errno) -> ChildStatus {
    // Started before the child, which would wait in vain if no thread can be started.
    let begun = Monitor(false)
    let feeder = try Thread("input") {
      _ = begun.wait(until: nil) { $0 ? true : nil }
      // A child that stops reading does not need the rest.
      try? given.feed(input)
    }
    defer {
      given.closeReading()
      begun.signal { $0 = true }
      // Children of a killed child may keep the pipe open without reading.
      if Interruption.isAsked { feeder.detach() } else { feeder.join() }
    }
    return try Interruption.run { () throws(Errno) in
      let child = try Child.spawn(
        "sh", ["-c", line],
        environment: Processes.environment(
          setting: settings, withoutPrefix: Programs.headerPrefix),
        input: given.reading,
        output: output, error: error)
      given.closeReading()
      started()
      begun.signal { $0 = true }
      return child
    }
  }

  private static func starting<Result>(
    _ program: String, _ body: () throws(Errno) -> Result
  ) throws -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      // A PATH directory without search permission also denies access to programs that exist
      // nowhere.
      let isNowhere =
        error == .accessDenied && !program.utf8.contains(UInt8(ascii: "/")) && !isInPath(program)
      throw NeverRan(error: WormholeError(isNowhere ? .noSuchFile : error, "run", program))
    }
  }

  private static func isInPath(_ program: String) -> Bool {
    guard let path = Processes.environment("PATH") else { return false }
    // An empty entry is the working directory.
    return path.parts(between: ":", keepingEmpty: true).contains { folder in
      let place = folder.isEmpty ? program : "\(folder)/\(program)"
      return (try? Descriptor.status(ofPath: place)) != nil
    }
  }
}

extension Failure {
  /// As `init(_:)`, with a status that tells the caller about a program that did not run.
  init(neverRan error: any Error) {
    self.init(error)
    let errno = (error as? Programs.NeverRan)?.error.errno.map { Errno(rawValue: $0) }
    if errno == .noSuchFile {
      status = ExitCode.noProgram.rawValue
    } else if let errno, Errno.ofPrograms.contains(errno) {
      status = ExitCode.notRunnable.rawValue
    } else if (error as? WormholeError)?.code != .timedOut, status != ExitCode.usage.rawValue {
      status = ExitCode.neverRan.rawValue
    }
  }
}

extension Errno {
  /// The errors of the system for an existing program that cannot be run.
  fileprivate static let ofPrograms: Set<Errno> = [
    .accessDenied, .notPermitted, .notExecutable, .notADirectory, .isADirectory, .tooManyLinks,
    .busyText, .argumentsTooLong, .nameTooLong,
  ]
}
