package import WormholeContainerStorage
package import WormholeSyscalls

/// The effect of SIGINT, SIGTERM, SIGHUP and SIGQUIT while the command has children or files to
/// clean up.
///
/// If a child runs, the child gets the signal too, and the command waits for its end: then the
/// command releases the lock and passes on the child's status. If the signal came from a terminal,
/// the child has already received it. Without a child, the command removes its temporary files and
/// ends by the signal; its locks are released with the process.
package enum Interruption {
  private struct State {
    var isReady = false
    var child: Child?
    /// A signal that arrived while a child ran.
    var passedOn: Int32?
    var cleanUp: (@Sendable () -> Void)?
  }

  private static let state = Monitor(State())

  /// Handles the signals from now on; must be called before the process has other threads.
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

  /// Waits while a signal is ending the process, because an error caused by that is not the real
  /// reason.
  package static func settle() { state.withLock { _ in } }

  private static func handle(_ signal: Signals.Arrival) {
    state.withLock { state in
      if let child = state.child {
        state.passedOn = signal.number
        // The child may have ended at this very moment.
        if !signal.isFromKernel { try? child.send(number: signal.number) }
        return
      }
      state.cleanUp?()
      Signals.end(by: signal.number)
    }
  }

  /// Whether a signal arrived while a child ran.
  package static var isAsked: Bool { state.withLock { $0.passedOn != nil } }

  /// Ends the process by the signal that arrived while a child ran, if any.
  ///
  /// For commands that would run another child next.
  package static func endIfAsked() {
    state.withLock { state in
      guard let number = state.passedOn else { return }
      state.cleanUp?()
      Signals.end(by: number)
    }
  }

  /// Runs a child to its end; in the meantime the child gets the signals.
  package static func run(_ start: () throws(Errno) -> Child) throws(Errno) -> ExitStatus {
    let child = try state.withLock { state throws(Errno) in
      let child = try start()
      state.child = child
      return child
    }
    try child.waitUntilEnded()
    // Until the status is collected, no other process gets the child's process ID.
    return try state.withLock { state throws(Errno) in
      state.child = nil
      return try child.wait()
    }
  }
}
