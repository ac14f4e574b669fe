package import WormholeContainerStorage
package import WormholeSyscalls

/// The effect of SIGINT, SIGTERM, SIGHUP and SIGQUIT while the command has children or files to
/// clean up.
///
/// If a child runs, the child gets the signal too, and the command waits for its end: then the
/// command releases the lock and passes on the child's status. If the signal came from a terminal,
/// the child has already received it. Without a child, the command removes its temporary files and
/// ends by the signal; its locks are released with the process. A command with several children at
/// a time ends itself, see ``endInOrder(_:)``.
package enum Interruption {
  private struct State {
    var isReady = false
    var children: [Child] = []
    /// A signal that arrived while a child ran, or that the command answers itself.
    var passedOn: Int32?
    var cleanUp: (@Sendable () -> Void)?
    /// Begins the end of a command that ends itself.
    var begin: (@Sendable () -> Void)?
    /// How long a child may run after the first signal; nil for as long as it takes.
    var grace: Duration?
  }

  private static let state = Monitor(State())

  /// Handles the signals from now on; must be called before the process has other threads.
  ///
  /// - Parameter grace: how long a child may run after a signal, before it is killed; nil for as
  ///   long as it takes.
  package static func prepare(
    grace: Duration? = nil, cleanUp: (@Sendable () -> Void)? = nil
  ) throws(WormholeError) {
    let isFirst = state.withLock { state in
      defer { state.isReady = true }
      state.cleanUp = cleanUp ?? state.cleanUp
      state.grace = grace ?? state.grace
      return !state.isReady
    }
    guard isFirst else { return }
    Signals.hold()
    try naming("wait for", "signals") { () throws(Errno) in
      try Thread("signals") { while true { handle(Signals.next()) } }.detach()
    }
  }

  /// Waits while a signal is ending the process, because an error caused by that is not the real
  /// reason.
  package static func settle() { state.withLock { _ in } }

  private static func handle(_ signal: CaughtSignal) {
    state.withLock { state in
      if !state.children.isEmpty || state.begin != nil {
        let isFirst = state.passedOn == nil
        state.passedOn = signal.number
        if !signal.isFromKernel {
          // A child may have ended at this very moment.
          for child in state.children { try? child.send(number: signal.number) }
        }
        state.begin?()
        if isFirst, let grace = state.grace { killChildren(after: grace) }
        return
      }
      state.cleanUp?()
      Signals.end(by: signal.number)
    }
  }

  /// Kills the children that are still running after the time.
  ///
  /// After a signal the command starts no further child.
  private static func killChildren(after grace: Duration) {
    if Mutants.has(.ignoreGrace) { return }
    // Without a thread, the children may run for as long as they take.
    try? Thread("grace") {
      Thread.pause(grace)
      state.withLock { state in
        for child in state.children { try? child.send(number: Processes.Signal.kill.number) }
      }
    }.detach()
  }

  /// Whether a signal arrived while a child ran, or for a command that ends itself.
  package static var isAsked: Bool { state.withLock { $0.passedOn != nil } }

  /// Lets the command end itself from now on: signals are passed on to its children, no further
  /// child starts, and the process ends by ``endIfAsked(isLast:)``.
  ///
  /// - Parameter begin: called for each signal, on the thread that waits for signals. The closure
  ///   must not call this type, whose lock the thread has.
  package static func endInOrder(_ begin: @escaping @Sendable () -> Void) {
    state.withLock { $0.begin = begin }
  }

  /// Ends the process by the signal that arrived while a child ran, if any.
  ///
  /// For commands that would run another child next.
  ///
  /// - Parameter isLast: whether a command that ends itself has done so.
  package static func endIfAsked(isLast: Bool = false) {
    state.withLock { state in
      if isLast { state.begin = nil }
      guard let number = state.passedOn, state.begin == nil else { return }
      state.cleanUp?()
      Signals.end(by: number)
    }
  }

  /// Runs a child to its end; in the meantime the child gets the signals.
  package static func run(_ start: () throws(Errno) -> Child) throws(Errno) -> ChildStatus {
    let child = try state.withLock { state throws(Errno) in
      if state.begin != nil, state.passedOn != nil { throw .interrupted }
      let child = try start()
      state.children.append(child)
      return child
    }
    try child.waitUntilEnded()
    // Until the status is collected, no other process gets the child's process ID.
    return try state.withLock { state throws(Errno) in
      state.children.removeAll { $0.process == child.process }
      return try child.wait()
    }
  }
}
