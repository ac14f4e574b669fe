package import SharedContainer
package import Syscalls

/// What SIGINT, SIGTERM, SIGHUP and SIGQUIT do while the command has children or files to look
/// after.
///
/// A child gets the signal too, and its end is waited for: then the lock is released and its status
/// passed on. A terminal has told it already. Without a child there is nothing to wait for: what
/// has to be removed is removed, and the process ends by the signal; its locks are free with it.
package enum Interruption {
  private struct State {
    var isReady = false
    var child: Child?
    /// A signal that came while there was a child.
    var passedOn: Int32?
    var cleanUp: (@Sendable () -> Void)?
  }

  private static let state = Monitor(State())

  /// Takes the signals from now on; called before anything else has threads.
  package static func prepare(cleanUp: (@Sendable () -> Void)? = nil) throws(WormholeError) {
    let isFirst = state.withLock { state in
      defer { state.isReady = true }
      state.cleanUp = cleanUp ?? state.cleanUp
      return !state.isReady
    }
    guard isFirst else { return }
    Signals.hold()
    do throws(Errno) {
      try Thread("signals") { while true { handle(Signals.next()) } }.detach()
    } catch {
      throw WormholeError(error, "wait for", "signals")
    }
  }

  /// Where a signal is about to end the process, what fails because of that is not the reason.
  package static func settle() { state.withLock { _ in } }

  private static func handle(_ signal: Signals.Arrival) {
    state.withLock { state in
      if let child = state.child {
        state.passedOn = signal.number
        // It may have ended this very moment.
        if !signal.isFromKernel { try? child.send(number: signal.number) }
        return
      }
      state.cleanUp?()
      Signals.end(by: signal.number)
    }
  }

  /// Whether a signal came while a child ran.
  package static var isAsked: Bool { state.withLock { $0.passedOn != nil } }

  /// Ends by the signal that came while a child ran, if one did.
  ///
  /// For those that would run another one next.
  package static func endIfAsked() {
    state.withLock { state in
      guard let number = state.passedOn else { return }
      state.cleanUp?()
      Signals.end(by: number)
    }
  }

  /// Runs a child to its end; the signals go to it meanwhile.
  package static func run(_ start: () throws(Errno) -> Child) throws(Errno) -> ExitStatus {
    let child = try state.withLock { state throws(Errno) in
      let child = try start()
      state.child = child
      return child
    }
    try child.waitUntilEnded()
    // Until it is asked for its status nobody else gets its number.
    return try state.withLock { state throws(Errno) in
      state.child = nil
      return try child.wait()
    }
  }
}
