internal import CLinux
import Glibc

/// This process, and others as far as signals reach them.
package enum Processes {
  package static var current: Int32 { getpid() }
  /// Another one than it was, once that has ended.
  package static var parent: Int32 { getppid() }

  /// Has the kernel kill this process when the thread that has started it ends.
  package static func endWithParent() { linux_end_with_parent() }
  package static var effectiveUser: UInt32 { geteuid() }
  package static var effectiveGroup: UInt32 { getegid() }

  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// The words after the program's name on its command line, as bytes that end with a zero.
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

  /// Whether a variable is set to bytes that are no UTF-8: as a string it would be another value,
  /// and two values one.
  package static func isGarbled(environment name: String) -> Bool {
    getenv(name).map { String(validatingCString: $0) == nil } ?? false
  }

  /// All of the environment for a program that is to be started, byte for byte as it is, but for
  /// what is set otherwise or left out.
  ///
  /// - Parameter settings: `NAME=value`.
  package static func environment(
    setting settings: [String], without unwanted: [String] = []
  ) -> [[CChar]] {
    let names =
      (settings.map { $0.parts(between: "=", most: 1, keepingEmpty: true)[0] } + unwanted).map {
        Array(($0 + "=").utf8CString.dropLast())
      }
    var all: [[CChar]] = []
    var next = environ
    while let setting = next.pointee {
      let bytes = UnsafeBufferPointer(start: setting, count: strlen(setting) + 1)
      if !names.contains(where: { bytes.starts(with: $0) }) { all.append(Array(bytes)) }
      next += 1
    }
    return all + settings.map { Array($0.utf8CString) }
  }

  package enum Signal: Sendable {
    case kill, stop, go, terminate, interrupt
    var number: CInt {
      switch self {
      case .kill: SIGKILL
      case .stop: SIGSTOP
      case .go: SIGCONT
      case .terminate: SIGTERM
      case .interrupt: SIGINT
      }
    }
  }

  package static func send(_ signal: Signal, to process: Int32) throws(Errno) {
    guard Glibc.kill(process, signal.number) == 0 else { throw Errno.current }
  }

  package static func exit(_ status: Int32) -> Never { Glibc.exit(status) }

  /// Ends without flushing, closing or cleaning anything up, as a crash would.
  package static func exitAtOnce(_ status: Int32) -> Never { _exit(status) }

  /// Lets a thread run that waits for the processor.
  package static func yield() { sched_yield() }
}

/// How a process ended.
package enum ExitStatus: Equatable, Sendable {
  case exited(Int32)
  case signalled(Int32)

  fileprivate init(_ raw: Int32) {
    let signal = raw & 0x7f
    self = signal == 0 ? .exited((raw >> 8) & 0xff) : .signalled(signal)
  }

  /// As shells say it: 128 and the signal's number for a process that one ended.
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
  /// It inherits the three standard descriptors named here and nothing else.
  ///
  /// - Parameters:
  ///   - program: a path, or a name to be looked up in PATH.
  ///   - ownSession: whether it is to be nobody's: signals of this process's terminal do not reach
  ///     it, and what this process ignores it does not.
  ///   - environment: as ``Processes/environment(setting:without:)`` makes it; by default this
  ///     process's own.
  ///   - directory: where it begins; by default where this process is.
  package static func spawn(
    _ program: String, _ arguments: [String] = [], environment: [[CChar]]? = nil,
    input: CInt = 0, output: CInt = 1, error: CInt = 2, ownSession: Bool = false,
    directory: String? = nil
  ) throws(Errno) -> Child {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // A dup onto itself clears close-on-exec, which is what is wanted for 0, 1 and 2.
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, error, 2)
    // What other libraries have left open without close-on-exec stays out too.
    linux_close_others(&actions)
    if let directory { linux_begin_in(&actions, directory) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    sigfillset(&all)
    for number in [SIGHUP, SIGINT, SIGQUIT] where !ownSession && Signals.isIgnored(number) {
      sigdelset(&all, number)
    }
    posix_spawnattr_setsigdefault(&attributes, &all)
    let session = ownSession ? linux_spawn_session : 0
    posix_spawnattr_setflags(
      &attributes, Int16(CInt(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | session))
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var settings: [UnsafeMutablePointer<CChar>?] = (environment ?? []).map { strdup($0) }
    settings.append(nil)
    defer { for setting in settings { free(setting) } }
    var process: pid_t = 0
    _ = try perform(.spawn, program) {
      let failure = settings.withUnsafeMutableBufferPointer { buffer in
        posix_spawnp(
          &process, program, &actions, &attributes, words,
          environment == nil ? environ : buffer.baseAddress!)
      }
      // It answers with the error itself instead of leaving it in errno.
      errno = failure
      return failure == 0 ? 0 : -1
    }
    return Child(process: process)
  }

  /// Starts a program that goes on without this process: in a session of its own, with nothing on
  /// its standard descriptors.
  package static func spawnAlone(
    _ program: String, _ arguments: [String], environment: [[CChar]], directory: String
  ) throws(Errno) -> Child {
    let nothing = try Descriptor.open(path: "/dev/null", [.readWrite])
    let number = nothing.rawValue
    return try spawn(
      program, arguments, environment: environment, input: number, output: number, error: number,
      ownSession: true, directory: directory)
  }

  /// Waits until the child has ended.
  package func wait() throws(Errno) -> ExitStatus {
    var status: Int32 = 0
    _ = try perform(.waitpid) { waitpid(process, &status, 0) }
    return ExitStatus(status)
  }

  /// Waits until the child has ended, and leaves its status, and so its number, where they are.
  package func waitUntilEnded() throws(Errno) {
    var information = siginfo_t()
    _ = try perform(.waitpid) {
      waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT)
    }
  }

  /// How the child ended; nil while it runs.
  package func poll() throws(Errno) -> ExitStatus? {
    var status: Int32 = 0
    let result = try perform(.waitpid) { waitpid(process, &status, WNOHANG) }
    return result == 0 ? nil : ExitStatus(status)
  }

  /// Waits until the child has stopped (true) or ended (false).
  package func waitUntilStopped() throws(Errno) -> Bool {
    var status: Int32 = 0
    _ = try perform(.waitpid) { waitpid(process, &status, WUNTRACED) }
    return status & 0xff == 0x7f
  }

  package func send(_ signal: Processes.Signal) throws(Errno) {
    try Processes.send(signal, to: process)
  }

  /// Passes on a signal that came as a number.
  package func send(number: Int32) throws(Errno) {
    guard Glibc.kill(process, number) == 0 else { throw Errno.current }
  }
}
