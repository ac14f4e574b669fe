import WormholeLibC
internal import WormholeCLinux

/// This process, and all processes that its signals reach.
package enum Processes {
  package static var current: Int32 { getpid() }
  /// The process ID of the parent; after the end of the parent, the ID of another process.
  package static var parent: Int32 { getppid() }

  /// The user whose rights this process has.
  package static var effectiveUser: UInt32 { geteuid() }

  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// The command-line arguments after the program's name, as zero-terminated bytes.
  package static var arguments: [UnsafePointer<CChar>] {
    guard var next = linux_arguments(), next.pointee != nil else { return [] }
    var words: [UnsafePointer<CChar>] = []
    next += 1
    while let word = next.pointee {
      words.append(UnsafePointer(word))
      next += 1
    }
    return words
  }

  /// Returns whether a variable contains bytes that are not UTF-8: as a string such a variable
  /// would have another value, and two different values would be equal.
  package static func isGarbled(environment name: String) -> Bool {
    getenv(name).map { String(validatingCString: $0) == nil } ?? false
  }

  /// Returns the whole environment for a program to be started, byte for byte unchanged, except for
  /// variables that are set here or left out.
  ///
  /// - Parameters:
  ///   - settings: `NAME=value`.
  ///   - prefix: the beginning of the names of further variables that are left out.
  package static func environment(
    setting settings: [String], without unwanted: [String] = [], withoutPrefix prefix: String? = nil
  ) -> [[CChar]] {
    let names =
      (settings.map { $0.parts(between: "=", most: 1, keepingEmpty: true)[0] } + unwanted).map {
        Array(($0 + "=").utf8CString.dropLast())
      } + (prefix.map { [Array($0.utf8CString.dropLast())] } ?? [])
    var all: [[CChar]] = []
    var next = linux_environment()!
    while let setting = next.pointee {
      let bytes = UnsafeBufferPointer(start: setting, count: strlen(setting) + 1)
      if !names.contains(where: { bytes.starts(with: $0) }) { all.append(Array(bytes)) }
      next += 1
    }
    return all + settings.map { Array($0.utf8CString) }
  }

  package enum Signal: Sendable {
    case kill, stop, go, terminate, interrupt, hangUp

    package var number: Int32 {
      switch self {
      case .kill: SIGKILL
      case .stop: SIGSTOP
      case .go: SIGCONT
      case .terminate: SIGTERM
      case .interrupt: SIGINT
      case .hangUp: SIGHUP
      }
    }
  }

  package static func send(_ signal: Signal, to process: Int32) throws(Errno) {
    guard WormholeLibC.kill(process, signal.number) == 0 else { throw Errno.current }
  }

  package static func exit(_ status: Int32) -> Never { WormholeLibC.exit(status) }

  /// Ends without flushing, closing or cleaning up, as a crash would.
  package static func exitAtOnce(_ status: Int32) -> Never { _exit(status) }

  /// Lets a thread run that waits for the processor.
  package static func yield() { sched_yield() }
}

/// How a process ended.
package enum ChildStatus: Equatable, Sendable {
  case exited(Int32)
  case signalled(Int32)

  fileprivate init(_ raw: Int32) {
    let signal = raw & 0x7f
    self = signal == 0 ? .exited((raw >> 8) & 0xff) : .signalled(signal)
  }

  /// The status as shells report it: 128 plus the signal's number if a signal ended the process.
  package var code: Int32 {
    switch self {
    case .exited(let code): code
    case .signalled(let signal): 128 + signal
    }
  }
}

/// A child process.
package struct Child: Sendable {
  package let process: Int32

  /// Starts a program.
  ///
  /// The program inherits the three standard descriptors named here and nothing else.
  ///
  /// - Parameters:
  ///   - program: a path, or a name to look up in PATH.
  ///   - input: the descriptor that becomes the standard input; nil for this process's own. If this
  ///     process has closed its own, the program's reads fail too. The same holds for `output` and
  ///     `error`.
  ///   - ownSession: whether the program gets a session of its own: signals of this process's
  ///     terminal do not reach the program, and the program does not ignore the signals that this
  ///     process ignores.
  ///   - resetsSignals: whether the program ignores no signal, even if this process does.
  ///   - environment: the result of ``Processes/environment(setting:without:)``; by default this
  ///     process's own.
  package static func spawn(
    _ program: String, _ arguments: [String] = [], environment: [[CChar]]? = nil,
    input: CInt? = nil, output: CInt? = nil, error: CInt? = nil, ownSession: Bool = false,
    resetsSignals: Bool = false
  ) throws(Errno) -> Child {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var copies: [CInt] = []
    defer { for copy in copies { _ = WormholeLibC.close(copy) } }
    for (stream, source) in zip(CInt(0)...2, [input, output, error]) {
      try addStream(stream, from: source, to: &actions, &copies)
    }
    // Descriptors that other libraries have left open without close-on-exec are closed too.
    linux_close_others(&actions)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    sigfillset(&all)
    if !ownSession && !resetsSignals {
      for number in [SIGHUP, SIGINT, SIGQUIT] where Signals.isIgnored(number) {
        sigdelset(&all, number)
      }
    }
    posix_spawnattr_setsigdefault(&attributes, &all)
    let session = ownSession ? linux_spawn_session : 0
    posix_spawnattr_setflags(
      &attributes, Int16(CInt(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | session))
    var process: pid_t = 0
    _ = try perform(.spawn, program) {
      let failure = withWords(program, arguments, environment) { words, settings in
        posix_spawnp(&process, program, &actions, &attributes, words, settings)
      }
      // posix_spawnp returns the error itself instead of leaving it in errno.
      errno = failure
      return failure == 0 ? 0 : -1
    }
    return Child(process: process)
  }

  /// Adds the action that gives a program a standard stream.
  ///
  /// If this process was started with closed streams, its files and pipes may have their numbers.
  /// The actions run one after the other, and each replaces the descriptor of a number, so a source
  /// with the number of another stream is copied before.
  ///
  /// - Parameter copies: receives the copies, to be closed after the start.
  private static func addStream(
    _ stream: CInt, from source: CInt?, to actions: inout posix_spawn_file_actions_t,
    _ copies: inout [CInt]
  ) throws(Errno) {
    let number = source ?? stream
    if source == nil, !isOwnStream(stream) {
      // Opened for the other direction: each use fails as that of a closed stream does, and no file
      // of the program gets the number.
      let flags = stream == 0 ? O_WRONLY : O_RDONLY
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", flags, 0)
    } else if number < 3, number != stream {
      let copy = try perform(.duplicate, on: number) { linux_duplicate(number) }
      copies.append(copy)
      posix_spawn_file_actions_adddup2(&actions, copy, stream)
    } else {
      // A dup of a number onto itself clears close-on-exec, as the numbers 0, 1 and 2 need.
      posix_spawn_file_actions_adddup2(&actions, number, stream)
    }
  }

  /// Whether a number belongs to a stream of the process from its start.
  ///
  /// All descriptors of this package are close-on-exec.
  private static func isOwnStream(_ number: CInt) -> Bool {
    let flags = fcntl(number, F_GETFD)
    return flags != -1 && flags & FD_CLOEXEC == 0
  }

  private typealias Words = UnsafePointer<UnsafeMutablePointer<CChar>?>

  /// Gives the body what C wants: the words of a command line and an environment.
  private static func withWords(
    _ program: String, _ arguments: [String], _ environment: [[CChar]]?,
    _ body: (Words, Words) -> CInt
  ) -> CInt {
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    guard let environment else { return body(words, linux_environment()!) }
    var settings: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) }
    settings.append(nil)
    defer { for setting in settings { free(setting) } }
    return body(words, settings)
  }

  /// Starts a program that goes on without this process, and inherits its environment's words, its
  /// user, its hard limits and little else: see `linux_spawn_alone`.
  ///
  /// - Parameter program: a path.
  package static func spawnAlone(
    _ program: String, _ arguments: [String], environment: [[CChar]], directory: String
  ) throws(Errno) -> Child {
    var process: pid_t = 0
    _ = try perform(.spawn, program) {
      let failure = withWords(program, arguments, environment) { words, settings in
        linux_spawn_alone(&process, program, words, settings, directory)
      }
      errno = failure
      return failure == 0 ? 0 : -1
    }
    return Child(process: process)
  }

  /// Waits until the child has ended.
  package func wait() throws(Errno) -> ChildStatus {
    var status: Int32 = 0
    _ = try perform(.waitpid) { waitpid(process, &status, 0) }
    return ChildStatus(status)
  }

  /// Waits until the child has ended, and leaves its status, and so its process ID, uncollected.
  package func waitUntilEnded() throws(Errno) {
    var information = siginfo_t()
    _ = try perform(.waitpid) {
      waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT)
    }
  }

  /// Returns how the child ended; nil while the child runs.
  package func poll() throws(Errno) -> ChildStatus? {
    var status: Int32 = 0
    let result = try perform(.waitpid) { waitpid(process, &status, WNOHANG) }
    return result == 0 ? nil : ChildStatus(status)
  }

  /// Waits until the child is suspended (true) or has ended (false).
  package func waitUntilStopped() throws(Errno) -> Bool {
    var status: Int32 = 0
    _ = try perform(.waitpid) { waitpid(process, &status, WUNTRACED) }
    return status & 0xff == 0x7f
  }

  package func send(_ signal: Processes.Signal) throws(Errno) {
    try Processes.send(signal, to: process)
  }

  /// Passes on a signal that arrived as a number.
  package func send(number: Int32) throws(Errno) {
    guard WormholeLibC.kill(process, number) == 0 else { throw Errno.current }
  }
}
