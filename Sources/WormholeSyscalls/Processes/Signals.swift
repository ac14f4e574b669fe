import WormholeLibC
internal import WormholeCLinux

/// Signals as events to wait for, in place of their default action.
package enum Signals {
  /// Keeps interrupt, termination, hang-up and quit from ending this thread, and all threads
  /// started from now on.
  package static func hold() {
    var signals = endings()
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  /// Waits for the next of the signals that are held.
  package static func next() -> CaughtSignal {
    var signals = endings()
    var information = siginfo_t()
    while true {
      let number = sigwaitinfo(&signals, &information)
      if number > 0 { return CaughtSignal(number: number, isFromKernel: information.si_code > 0) }
    }
  }

  /// Makes the quit key end the process as it ends any program, with no report of a crash.
  package static func quitQuietly() {
    if !isIgnored(SIGQUIT) { linux_set_signal(SIGQUIT, 0) }
  }

  /// Lets a write fail where it would end the process: to a pipe that nobody reads (EPIPE), or
  /// beyond the largest file that this process may write (EFBIG).
  ///
  /// For programs of this package only: in another program the disposition of a signal is not the
  /// library's to change. Programs that are started begin with the default again.
  package static func failRefusedWrites() {
    linux_set_signal(SIGPIPE, 1)
    linux_set_signal(SIGXFSZ, 1)
  }

  /// Ends this process by a signal, so that the parent process sees the signal's number.
  package static func end(by number: Int32) -> Never {
    linux_set_signal(number, 0)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    _exit(128 + number)
  }

  /// Returns whether this process ignores a signal, as nohup(1) makes a program do.
  ///
  /// The parent process may have caused this. This process, and every program started from here,
  /// then continues to ignore the signal.
  static func isIgnored(_ number: Int32) -> Bool { linux_ignores_signal(number) != 0 }

  private static func endings() -> sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] where !isIgnored(number) {
      sigaddset(&signals, number)
    }
    return signals
  }
}

/// A signal that has arrived.
package struct CaughtSignal: Sendable {
  package let number: Int32
  /// Whether the kernel sent the signal, as a terminal does to all programs in its foreground.
  package let isFromKernel: Bool
}
