internal import Dispatch
internal import DropIns
internal import Foundation
internal import Syscalls
internal import Wormhole

/// From `activate()` to the end of the activation, and back when the phone changes to another
/// watch.
///
/// All of it is done on the session's `work` queue, which no callback and no call waits for. That
/// queue does wait for callbacks, when it ends what may be calling one.
extension WCSession {
  /// For how long a name that is taken is waited for, and after which a failure is told: code that
  /// activates again as soon as it is told would do nothing else.
  private static var patience: Duration { .seconds(1) }

  /// Begins to activate the session; the delegate is told of the end.
  ///
  /// Until that method has returned no other is called. A session that is active stays so, and
  /// tells only a delegate that has not been told; but if its container was removed or moved away,
  /// it begins anew with the one that is there. One that is about to be deactivated is activated
  /// again afterwards. Without a delegate nothing happens, and the log is told.
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
    if state.withLock({ $0.opened })?.hole.container.isInPlace == false { return beginAnew() }
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
      work.asyncAfter(deadline: .now() + .milliseconds(20)) {
        self.tryActivation(until: deadline)
      }
    } catch {
      fail(WCError(.genericError, "\(error)"), at: deadline)
    }
  }

  private func fail(_ error: WCError, at deadline: Instant) {
    let left = deadline - .now
    firstCallbacks.asyncAfter(deadline: .now() + .nanoseconds(Int(left.inNanoseconds))) {
      self.state.withLock { $0.isActivating = false }
      self.delegate?.session(self, activationDidCompleteWith: .notActivated, error: error)
    }
  }

  private func open() throws {
    guard state.withLock({ $0.opened }) == nil else { return }
    let part = try fixedPart ?? Self.part()
    if fixedPart == nil { FileManager.default.makeDocumentDirectory() }
    let hole = try part.open()
    let pairing = Pairing(in: hole)
    do throws(WormholeError) {
      let watching = try pairing.watch(on: work) { [weak self] _ in self?.pairingChanged() }
      state.withLock { state in
        state.part = part
        state.opened = Opened(hole: hole, pairing: pairing, watching: watching)
      }
    } catch {
      hole.close()
      throw error
    }
  }

  /// Becomes a member of the pairing that there is, if there is one.
  private func connect() throws {
    guard let (opened, part) = state.withLock({ state in state.opened.map { ($0, state.part!) } }),
      let watch = part.role == .watch ? part.watch : try look(at: opened.pairing).active
    else { return }
    let connection = try Connection(
      opened.hole, part.role, watch: watch, transfers(to: watch))
    do {
      try listen(connection)
    } catch {
      connection.end()
      throw error
    }
    state.withLock { ($0.connection, $0.wantsEnds) = (connection, false) }
  }

  /// Before anything is sent, so that no end is missed.
  private func listen(_ connection: Connection) throws {
    connection.keep(
      reachability: try connection.peer.watchReachability(on: work) { [weak self] _ in
        self?.report()
      },
      // Whoever can be started can be reached.
      starts: try connection.hole.watchStarts(on: work) { [weak self] in self?.report() })
    connection.keep(
      responding: connection.member.respond(toKind: nil) { [weak self] request in
        guard let self else { return request.refuse("its session has ended") }
        take(request)
      })
    // Last of all: an end that is being told may wait for the activation, and if anything failed
    // now the connection's end would wait for that.
    try listenToEnds(connection)
  }

  private func finishActivation() {
    state.withLock { state in
      (state.isActivating, state.activation) = (false, .activated)
      // It is about to be: whoever activates once more meanwhile is not told twice.
      state.told = state.delegate
      state.report = nil
    }
    // What is so now; each change from now on is told.
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

  /// Somebody has changed what is paired.
  private func pairingChanged() {
    guard activationState == .activated, let opened = state.withLock({ $0.opened }) else { return }
    do {
      let pairing = try look(at: opened.pairing)
      let connection = connection
      if part?.role == .phone, connection?.watch != pairing.active {
        if connection != nil, pairing.active != nil { return deactivate() }
        // There was no watch, or there is none any more: the session stays as it is.
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

  /// Says what could not be done, and does it a second later, as nothing that comes tells that it
  /// can be done now; unless it never will be, or what changes that is told.
  func tryLater(_ error: any Error) {
    DropInLog.tell(.error, error)
    switch (error as? WormholeError)?.code {
    case .notAContainer, .forked, .notJoined, .cancelled, .damaged, .typeMismatch, .invalidName:
      return
    default: later.plan(on: work) { [weak self] in self?.pairingChanged() }
    }
  }

  /// The phone changes to another watch.
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

  /// In a container that has taken the place of the one before; nothing of that one holds there.
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

  /// Where delegates are called: nothing more is until it is activated again.
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

  /// What delegates are told the changes of.
  struct Report: Equatable {
    var watch = [false, false, false]
    var directory: String?
    var isCounterpartInstalled = false
    var isReachable = false
  }

  /// Tells the delegate what has changed since it was told last.
  func report() {
    do throws(WormholeError) {
      try reportNow()
    } catch {
      // Whoever asks meanwhile is told that nothing is there.
      state.withLock { $0.report = $0.report ?? Report() }
      tryLater(error)
    }
  }

  private func reportNow() throws(WormholeError) {
    guard activationState == .activated, let part, let opened = state.withLock({ $0.opened })
    else { return }
    let (pairing, connection) = (try look(at: opened.pairing), connection)
    let hasCounterpart = part.hasCounterpart(pairing)
    let now = Report(
      watch: [part.isPaired(pairing), hasCounterpart, pairing.hasComplication],
      directory: connection?.watch, isCounterpartInstalled: hasCounterpart,
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

  /// Ends the session as the end of its process would, for tests that have several in one.
  package func end() {
    work.sync {
      let (opened, connection) = state.withLock { state in
        defer { (state.opened, state.connection, state.activation) = (nil, nil, .notActivated) }
        return (state.opened, state.connection)
      }
      // Those who wait for their turn there have to get it.
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
  /// None if it is negative.
  fileprivate var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return max(0, min(seconds, 1 << 31) * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
