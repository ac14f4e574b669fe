import CommandLine
import SharedContainer
import Syscalls

/// Programs that the command runs for its caller.
enum Programs {
  /// A program was never started, so it has no status.
  struct NeverRan: FailureTold {
    let error: WormholeError
    var failure: Failure { Failure(error) }
  }

  /// Runs a program with this process's own input and output; answers how it ended.
  static func run(_ words: [String], _ settings: [String]) throws -> ExitStatus {
    try starting(words[0]) { () throws(Errno) in
      try Interruption.run { () throws(Errno) in
        try Child.spawn(
          words[0], Array(words.dropFirst()), environment: Processes.environment(setting: settings))
      }
    }
  }

  /// Runs a line of shell with bytes on its standard input, its output going where ours goes.
  static func shell(_ line: String, input: [UInt8], _ settings: [String]) throws -> ExitStatus {
    try starting("sh") { () throws(Errno) in
      let given = try SharedPipe()
      return try feeding(given, input, to: line, settings, output: 1)
    }
  }

  /// Runs a line of shell that makes one value of another.
  static func filter(
    _ line: String, input: [UInt8], _ settings: [String], limit: Int
  ) throws -> (status: ExitStatus, output: [UInt8]) {
    try starting("sh") { () throws(Errno) in try filter(line, input, settings, limit) }
  }

  private static func filter(
    _ line: String, _ input: [UInt8], _ settings: [String], _ limit: Int, error: SharedPipe? = nil,
    ended: () -> Void = {}
  ) throws(Errno) -> (status: ExitStatus, output: [UInt8]) {
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
    // Whoever was to end does not wait for what the child has left behind, which may keep the pipe
    // open; what the child has written is in it already.
    if Interruption.isAsked,
      collected.wait(until: .now + .milliseconds(100), { $0 == nil ? nil : true }) == nil
    {
      Interruption.endIfAsked()
    }
    collector.join()
    return (try result.get(), try collected.withLock { $0! }.get())
  }

  /// Runs a line of shell that makes one value of another, and keeps the end of its complaints,
  /// which go where ours go too.
  ///
  /// If this process was asked to end meanwhile, it does so with its child, and nobody is answered:
  /// who waits learns that this has ended. What the child has left behind may keep the pipes open
  /// for as long as it likes.
  static func answer(
    _ line: String, input: [UInt8], _ settings: [String], limit: Int
  ) throws -> (status: ExitStatus, output: [UInt8], complaint: String) {
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
          // The child's last words are in the pipe already.
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

  /// Runs it to its end, whether it reads all that it is given or not.
  private static func feeding(
    _ given: SharedPipe, _ input: [UInt8], to line: String, _ settings: [String], output: CInt,
    error: CInt = 2, _ started: () -> Void = {}
  ) throws(Errno) -> ExitStatus {
    // Started before there is a child, which would wait in vain for a thread that cannot be had.
    let begun = Monitor(false)
    let feeder = try Thread("input") {
      _ = begun.wait(until: nil) { $0 ? true : nil }
      // Whoever does not read it all has no use for it.
      try? given.feed(input)
    }
    defer {
      given.closeReading()
      begun.signal { $0 = true }
      feeder.join()
    }
    return try Interruption.run { () throws(Errno) in
      let child = try Child.spawn(
        "sh", ["-c", line], environment: Processes.environment(setting: settings),
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
      // A directory of PATH that may not be looked into denies access to what is nowhere.
      let isNowhere =
        error == .accessDenied && !program.utf8.contains(UInt8(ascii: "/")) && !isInPath(program)
      throw NeverRan(error: WormholeError(isNowhere ? .noSuchFile : error, "run", program))
    }
  }

  private static func isInPath(_ program: String) -> Bool {
    (Processes.environment("PATH") ?? "").parts(between: ":").contains { folder in
      (try? Descriptor.status(ofPath: "\(folder)/\(program)")) != nil
    }
  }
}

extension Failure {
  /// The same, where the caller has to be told that the program it wanted to run did not.
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
  /// What the system says of a program that is there and cannot be run.
  fileprivate static let ofPrograms: Set<Errno> = [
    .accessDenied, .notPermitted, .notExecutable, .notADirectory, .isADirectory, .tooManyLinks,
    .busyText, .argumentsTooLong, .nameTooLong,
  ]
}
