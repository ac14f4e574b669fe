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
  /// tells only a delegate that has not been told. One that is about to be deactivated is activated
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
    state.withLock { state in
      state.part = part
      state.opened = Opened(hole: hole, pairing: Pairing(in: hole))
    }
    let watching = try Pairing(in: hole).watch(on: work) { [weak self] _ in
      self?.pairingChanged()
    }
    state.withLock { $0.opened?.watching = watching }
  }

  /// Becomes a member of the pairing that there is, if there is one.
  private func connect() throws {
    guard let (opened, part) = state.withLock({ state in state.opened.map { ($0, state.part!) } }),
      let watch = part.role == .watch ? part.watch : try read(opened.pairing).active
    else { return }
    let connection = try Connection(
      opened.hole, part.role, watch: watch, transfers(to: watch))
    do {
      try listen(connection)
    } catch {
      connection.end()
      throw error
    }
    state.withLock { $0.connection = connection }
  }

  private func read(_ pairing: Pairing) throws -> Pairing.State {
    let (state, version) = try pairing.versioned
    note(state, version)
    return state
  }

  /// Before anything is sent, so that no end is missed.
  private func listen(_ connection: Connection) throws {
    try listenToEnds(connection)
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
    guard activationState == .activated, let pairing = pairingState else { return }
    let connection = connection
    if part?.role == .phone, connection?.watch != pairing.active {
      if connection != nil, pairing.active != nil { return deactivate() }
      // There was no watch, or there is none any more: the session stays as it is.
      state.withLock { $0.connection = nil }
      connection?.end()
      do {
        try connect()
      } catch {
        DropInLog.tell(.error, "cannot speak with watch '\(pairing.active ?? "")': \(error)")
      }
    }
    review()
    report()
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
      self.state.withLock { state in
        (state.activation, state.isHeldBack) = (.notActivated, true)
        state.told = nil
      }
      self.delegate?.sessionDidDeactivate(self)
      // What is still to be called waits until it is activated again.
      self.callbacks.suspend()
      self.work.async { self.activateIfWanted() }
    }
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
    var watch: [Bool]
    var directory: String?
    var isCounterpartInstalled: Bool
    var isReachable: Bool
  }

  /// Tells the delegate what has changed since it was told last.
  func report() {
    guard activationState == .activated, let part, let pairing = pairingState else { return }
    let now = Report(
      watch: [isPaired, part.hasCounterpart(pairing), isComplicationEnabled],
      directory: connection?.watch, isCounterpartInstalled: part.hasCounterpart(pairing),
      isReachable: connection?.isReachable(pairing) ?? false)
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
      opened?.watching?.stop()
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
