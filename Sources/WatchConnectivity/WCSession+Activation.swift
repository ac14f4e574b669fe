internal import Dispatch
internal import DropIns
internal import Foundation
internal import Syscalls
internal import Wormhole

/// The way from `activate()` to the end of the activation, and the way back when the phone changes
/// to another watch.
///
/// All steps run on the session's `work` queue; no callback and no call waits for the `work` queue.
/// The `work` queue itself does wait for callbacks, when it ends a subscription whose callback may
/// be running.
extension WCSession {
  /// The time limit for a name that another process holds, and the delay before a failure is
  /// reported.
  ///
  /// Without the delay, code that activates again in its callback would do nothing else.
  private static var patience: Duration { .seconds(1) }

  /// Starts the activation of the session; the delegate is notified of the result.
  ///
  /// No other method of the delegate is called before the activation's callback has returned. An
  /// active session remains active, and notifies only a delegate that was not notified before. If
  /// the container of an active session was removed or moved away, the session starts again with
  /// the container that is there now. A session that is about to be deactivated is activated again
  /// afterwards. Without a delegate nothing happens, and the log records the error.
  public func activate() {
    guard delegate != nil else {
      DropInLog.tell(.error, "\(WCError(.sessionMissingDelegate).localizedDescription)")
      return
    }
    work.async { self.beginActivation() }
  }

  private func beginActivation() {
    let (activation, isFirst) = state.withLock { state in
      if state.activation == .inactive { state.isWantedAgain = true }
      guard state.activation == .notActivated, !state.isActivating else {
        return (state.activation, false)
      }
      state.isActivating = true
      return (state.activation, true)
    }
    if isFirst { return tryActivation(until: .now + Self.patience) }
    guard activation == .activated else { return }
    if state.withLock({ $0.opened })?.container.storage.isInPlace == false { return beginAnew() }
    let isNew = state.withLock { state in
      defer { state.told = state.delegate }
      return state.told !== state.delegate
    }
    if isNew { callbacks.async { self.tellActivation(nil) } }
  }

  private func tryActivation(until deadline: Instant) {
    do {
      try open()
      try connect()
      finishActivation()
    } catch let error as WCError {
      fail(error, at: deadline)
    } catch let error as WormholeError {
      guard error.code == .nameTaken, Instant.now < deadline else {
        return fail(WCError(error), at: deadline)
      }
      work.soon(after: .milliseconds(20)) {
        self.tryActivation(until: deadline)
      }
    } catch {
      fail(WCError(.genericError, "\(error)"), at: deadline)
    }
  }

  private func fail(_ error: WCError, at deadline: Instant) {
    firstCallbacks.later(deadline) {
      self.state.withLock { $0.isActivating = false }
      self.delegate?.session(self, activationDidCompleteWith: .notActivated, error: error)
    }
  }

  private func open() throws {
    guard state.withLock({ $0.opened }) == nil else { return }
    let part = try fixedPart ?? Self.part()
    if fixedPart == nil { FileManager.default.makeDocumentDirectory() }
    let container = try part.open()
    let pairing = Pairing(in: container)
    do throws(WormholeError) {
      let watching = try pairing.watch(on: work) { [weak self] _ in self?.pairingChanged() }
      state.withLock { state in
        state.part = part
        state.opened = Opened(container: container, pairing: pairing, watching: watching)
      }
    } catch {
      container.close()
      throw error
    }
  }

  /// Joins the current pairing as a member, if there is a pairing.
  private func connect() throws {
    guard let (opened, part) = state.withLock({ state in state.opened.map { ($0, state.part!) } }),
      let watch = part.role == .watch ? part.watch : try look(at: opened.pairing).active
    else { return }
    let connection = try Connection(
      opened.container, part.role, watch: watch, transfers(to: watch))
    do {
      try listen(connection)
    } catch {
      connection.end()
      throw error
    }
    state.withLock { ($0.connection, $0.wantsEnds) = (connection, false) }
  }

  /// Subscribes before anything is sent, so that no outcome is missed.
  private func listen(_ connection: Connection) throws {
    connection.keep(
      reachability: try connection.peer.watchReachability(on: work) { [weak self] _ in
        self?.report()
      },
      // A counterpart that can be started is reachable.
      starts: try connection.container.watchLaunches(on: work) { [weak self] in self?.report() })
    connection.keep(
      responding: connection.member.respond(toKind: nil) { [weak self] request in
        guard let self else { return request.refuse("its session has ended") }
        take(request)
      })
    // Outcomes come last: the delivery of an outcome may wait for the activation. If a step after
    // this one failed, the end of the connection would wait for that delivery.
    try listenToEnds(connection)
  }

  private func finishActivation() {
    state.withLock { state in
      (state.isActivating, state.activation) = (false, .activated)
      // The delegate is about to be notified: another `activate()` before the callback does not
      // notify it twice.
      state.told = state.delegate
      state.report = nil
    }
    // The state at this moment is the first report; each later change is reported.
    report()
    firstCallbacks.async {
      self.tellActivation(nil)
      let isHeldBack = self.state.withLock { state in
        defer { state.isHeldBack = false }
        return state.isHeldBack
      }
      if isHeldBack { self.callbacks.resume() }
    }
    review()
  }

  private func tellActivation(_ error: WCError?) {
    guard let delegate else { return }
    state.withLock { $0.told = delegate }
    delegate.session(self, activationDidCompleteWith: activationState, error: error)
  }

  // MARK: Changes

  /// Handles a change of the pairing by any process.
  private func pairingChanged() {
    guard activationState == .activated, let opened = state.withLock({ $0.opened }) else { return }
    do {
      let pairing = try look(at: opened.pairing)
      let connection = connection
      if part?.role == .phone, connection?.watch != pairing.active {
        if connection != nil, pairing.active != nil { return deactivate() }
        // Either there was no watch before, or there is none now: the session remains active.
        state.withLock { $0.connection = nil }
        connection?.end()
        try connect()
      }
    } catch {
      tryLater(error)
    }
    review()
    report()
  }

  /// Logs a failure and repeats the work a second later, because no notice reports that the work
  /// has become possible.
  ///
  /// A permanent failure is not repeated, nor is a failure whose remedy sends a notice.
  func tryLater(_ error: any Error) {
    DropInLog.tell(.error, error)
    switch (error as? WormholeError)?.code {
    case .notAContainer, .forked, .notJoined, .cancelled, .damaged, .typeMismatch, .invalidName:
      return
    default: later.plan(on: work) { [weak self] in self?.pairingChanged() }
    }
  }

  /// Deactivates the session, because the phone changes to another watch.
  private func deactivate() {
    let connection = state.withLock { state in
      state.activation = .inactive
      defer { state.connection = nil }
      return state.connection
    }
    callbacks.async { self.delegate?.sessionDidBecomeInactive(self) }
    connection?.end()
    callbacks.async {
      self.holdBack { self.delegate?.sessionDidDeactivate(self) }
    }
  }

  /// Starts again in a container that has replaced the previous container.
  ///
  /// No state of the previous container is valid there.
  private func beginAnew() {
    let (opened, connection) = state.withLock { state in
      (state.activation, state.isWantedAgain) = (.inactive, true)
      defer { (state.opened, state.connection) = (nil, nil) }
      return (state.opened, state.connection)
    }
    opened?.watching.stop()
    connection?.end()
    forget()
    callbacks.async { self.holdBack {} }
  }

  /// Runs on the queue where delegates are called, and suspends that queue: no delegate is called
  /// until the session is activated again.
  private func holdBack(_ tell: () -> Void) {
    state.withLock { state in
      (state.activation, state.isHeldBack) = (.notActivated, true)
      state.told = nil
    }
    tell()
    callbacks.suspend()
    work.async { self.activateIfWanted() }
  }

  private func activateIfWanted() {
    let isWanted = state.withLock { state in
      defer { state.isWantedAgain = false }
      return state.isWantedAgain
    }
    if isWanted { beginActivation() }
  }

  /// The values whose changes are reported to the delegate.
  struct Report: Equatable {
    var watch = [false, false, false]
    /// The number of the active watch's directory.
    ///
    /// One notice may cover an uninstallation and the next installation, or an end of the pairing
    /// and the next pairing: then only this number differs.
    var directory: Int?
    var isCounterpartInstalled = false
    var isReachable = false
  }

  /// Notifies the delegate of all changes since the previous report.
  func report() {
    do throws(WormholeError) {
      try reportNow()
    } catch {
      // Until the next attempt, the session's properties report that no counterpart exists; the
      // empty report agrees with these properties.
      state.withLock { $0.report = $0.report ?? Report() }
      tryLater(error)
    }
  }

  private func reportNow() throws(WormholeError) {
    guard activationState == .activated, let part, let opened = state.withLock({ $0.opened })
    else { return }
    let (pairing, connection) = (try look(at: opened.pairing), connection)
    // The phone has changed to another watch. The notice of this change deactivates the session,
    // and the delegate is told of nothing else until then.
    if part.role == .phone, let connection, let active = pairing.active,
      connection.watch != active
    {
      return
    }
    let hasCounterpart = part.hasCounterpart(pairing)
    let now = Report(
      watch: [part.isPaired(pairing), hasCounterpart, pairing.hasComplication],
      directory: pairing.activeWatch?.directory, isCounterpartInstalled: hasCounterpart,
      isReachable: try connection?.isReachable(pairing) ?? false)
    let before = state.withLock { state in
      defer { state.report = now }
      return state.report
    }
    guard let before else { return }
    if part.role == .phone, (before.watch, before.directory) != (now.watch, now.directory) {
      callbacks.async { self.delegate?.sessionWatchStateDidChange(self) }
    }
    if part.role == .watch, before.isCounterpartInstalled != now.isCounterpartInstalled {
      callbacks.async { self.delegate?.sessionCompanionAppInstalledDidChange(self) }
    }
    if before.isReachable != now.isReachable {
      callbacks.async { self.delegate?.sessionReachabilityDidChange(self) }
    }
  }

  /// Ends the session as the end of its process would; for tests with several sessions in one
  /// process.
  package func end() {
    work.sync {
      let (opened, connection) = state.withLock { state in
        defer { (state.opened, state.connection, state.activation) = (nil, nil, .notActivated) }
        return (state.opened, state.connection)
      }
      // Callbacks that wait on the suspended queue must run: stopping a subscription waits for its
      // callback.
      resumeForGood()
      opened?.watching.stop()
      connection?.end()
    }
  }

  private func resumeForGood() {
    let isHeldBack = state.withLock { state in
      defer { state.isHeldBack = false }
      state.delegate = nil
      return state.isHeldBack
    }
    if isHeldBack { callbacks.resume() }
  }
}

extension Duration {
  /// Zero if the duration is negative.
  fileprivate var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return max(0, min(seconds, 1 << 31) * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
