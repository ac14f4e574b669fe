import Glibc

/// Signals as things to wait for, in place of what they would do.
package enum Signals {
  /// A signal that came.
  package struct Arrival: Sendable {
    package let number: Int32
    /// Whether the kernel sent it, as a terminal does to all programs in its foreground.
    package let isFromKernel: Bool
  }

  /// Keeps interrupt, termination, hang-up and quit from ending this thread, and those started from
  /// now.
  package static func hold() {
    var signals = endings()
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  /// Waits for the next of the signals that are held.
  package static func next() -> Arrival {
    var signals = endings()
    var information = siginfo_t()
    while true {
      let number = sigwaitinfo(&signals, &information)
      if number > 0 { return Arrival(number: number, isFromKernel: information.si_code > 0) }
    }
  }

  /// Lets the key that quits end the process as it ends others, with no report of a crash.
  package static func quitQuietly() {
    if !isIgnored(SIGQUIT) { signal(SIGQUIT, SIG_DFL) }
  }

  /// Lets writing to a pipe that nobody reads fail, where it would end the process.
  package static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

  /// Ends this process by a signal, so that whoever started it sees which.
  package static func end(by number: Int32) -> Never {
    signal(number, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    _exit(128 + number)
  }

  /// Whoever started this process may have had it ignore a signal, as nohup(1) does; then it, and
  /// what it starts, goes on ignoring it.
  static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    return handler == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func endings() -> sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] where !isIgnored(number) {
      sigaddset(&signals, number)
    }
    return signals
  }
}
