internal import Dispatch
internal import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholeSyscalls

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
  /// the session's container was removed or moved away, the session starts again with the container
  /// that is there now. A session that is about to be deactivated is activated again afterwards.
  /// Without a delegate nothing happens, and the log records the error.
  public func activate() {
    guard delegate != nil else {
      DropInLog.tell(.error, "\(WCError(.sessionMissingDelegate).localizedDescription)")
      return
    }
    work.async { self.beginActivation() }
  }

  private func beginActivation() {
    let isInPlace = state.withLock { $0.opened }?.container.storage.isInPlace ?? true
    advance { $0.machine.activate(isInPlace: isInPlace) }
  }

  /// Performs the actions that follow an event; on the `work` queue.
  private func advance(_ event: (inout State) -> [SessionMachine.Action]) {
    for action in state.withLock(event) { perform(action) }
    observers.review()
  }

  private func perform(_ action: SessionMachine.Action) {
    switch action {
    case .attempt: tryActivation(until: .now + Self.patience)
    case .tellActivation:
      firstCallbacks.async {
        self.tellActivation()
        if self.state.withLock({ $0.machine.activationIsTold() }) { self.callbacks.resume() }
      }
    case .tellAgain:
      callbacks.async {
        if self.state.withLock({ $0.told !== $0.delegate }) { self.tellActivation() }
      }
    case .close: close()
    case .connect:
      do {
        try connect()
        let watch = connection?.watch
        state.withLock { $0.machine.connected(with: watch) }
      } catch {
        tryLater(error)
      }
    case .disconnect: disconnect()
    case .tellInactive: callbacks.async { self.delegate?.sessionDidBecomeInactive(self) }
    case .holdBack(let isTold): callbacks.async { self.holdBack(isTold: isTold) }
    case .review: review()
    case .observe: report()
    }
  }

  private func tryActivation(until deadline: Instant) {
    do {
      try open()
      try connect()
      let watch = connection?.watch
      advance { $0.machine.activated(with: watch) }
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
      self.state.withLock { $0.machine.activationFailed() }
      self.delegate?.session(self, activationDidCompleteWith: .notActivated, error: error)
    }
  }

  /// Opens the container at the session's place, unless the session has it open already.
  private func open() throws {
    if let opened = state.withLock({ $0.opened }) {
      if opened.container.storage.isInPlace { return }
      // The container of an earlier activation was removed or moved away.
      close()
    }
    let part = try fixedPart ?? Self.part()
    if fixedPart == nil { FileManager.default.makeDocumentDirectory() }
    let container = try part.open()
    let pairing = Pairing(in: container)
    do throws(WormholeError) {
      let watching = try pairing.watch(on: work) { [weak self] _ in self?.pairingChanged() }
      state.withLock { state in
        state.part = part
        state.opened = OpenSession(container: container, pairing: pairing, watching: watching)
      }
    } catch {
      container.close()
      throw error
    }
  }

  /// Joins the current pairing as a member, if there is a pairing.
  private func connect() throws {
    guard let (opened, part) = state.withLock({ state in state.opened.map { ($0, state.part!) } }),
      let watch = part.role == .watch ? part.watch : try look(at: opened).active
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
      try connection.peer.watchReachability(on: work) { [weak self] _ in self?.report() })
    // A counterpart that can be started is reachable.
    connection.keep(
      try connection.container.watchLaunches(on: work) { [weak self] in self?.report() })
    connection.keep(
      connection.member.respond(toKind: nil) { [weak self] request in
        guard let self else { return request.refuse("the session of the counterpart has ended") }
        take(request)
      })
    // Outcomes come last: the delivery of an outcome may wait for the activation. If a step after
    // this one failed, the end of the connection would wait for that delivery.
    try listenToEnds(connection)
  }

  private func tellActivation() {
    guard let delegate else { return }
    state.withLock { $0.told = delegate }
    delegate.session(self, activationDidCompleteWith: activationState, error: nil)
  }

  // MARK: Changes

  /// Handles a change of the pairing by any process.
  func pairingChanged() {
    guard activationState == .activated, let part, let opened = state.withLock({ $0.opened }) else {
      return
    }
    do throws(WormholeError) {
      let active = part.role == .phone ? try look(at: opened).active : part.watch
      advance { $0.machine.pairingChanged(active: active) }
    } catch {
      tryLater(error)
      review()
      report()
    }
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
    default: pairingReader.retry()
    }
  }

  private func disconnect() {
    let connection = state.withLock { exchange(&$0.connection, with: nil) }
    connection?.end()
  }

  private func close() {
    let opened = state.withLock { exchange(&$0.opened, with: nil) }
    opened?.watching.stop()
    disconnect()
    forget()
  }

  /// Runs on the queue where delegates are called, and suspends that queue: no delegate is called
  /// until the session is activated again.
  private func holdBack(isTold: Bool) {
    state.withLock { state in
      state.machine.deactivating()
      state.told = nil
    }
    if isTold { delegate?.sessionDidDeactivate(self) }
    callbacks.suspend()
    work.async { self.advance { $0.machine.deactivated() } }
  }

  /// Notifies the delegate of all changes since the previous report.
  func report() {
    defer { observers.review() }
    guard activationState == .activated, let part, let opened = state.withLock({ $0.opened })
    else { return }
    do throws(WormholeError) {
      let (pairing, connection) = (try look(at: opened), connection)
      let hasCounterpart = part.hasCounterpart(pairing)
      let now = SessionMachine.Report(
        watch: [part.isPaired(pairing), hasCounterpart, pairing.hasComplication],
        directory: pairing.activeWatch?.directory, isCounterpartInstalled: hasCounterpart,
        isReachable: try connection?.isReachable(pairing) ?? false)
      tellChanges(to: now, active: pairing.active, part.role)
    } catch {
      tellChanges(to: nil, active: nil, part.role)
      tryLater(error)
    }
  }

  private func tellChanges(
    to now: SessionMachine.Report?, active: String?, _ role: Role
  ) {
    let changes = state.withLock { $0.machine.changes(to: now, active: active, of: role) }
    for change in changes {
      callbacks.async {
        switch change {
        case .watchState: self.delegate?.sessionWatchStateDidChange(self)
        case .companion: self.delegate?.sessionCompanionAppInstalledDidChange(self)
        case .reachability: self.delegate?.sessionReachabilityDidChange(self)
        }
      }
    }
  }

  /// Ends the session as the end of its process would; for tests with several sessions in one
  /// process.
  package func end() {
    work.sync {
      let (opened, isHeldBack) = state.withLock { state in
        defer { (state.opened, state.delegate) = (nil, nil) }
        return (state.opened, state.machine.end())
      }
      // Callbacks that wait on the suspended queue must run: stopping a subscription waits for its
      // callback.
      if isHeldBack { callbacks.resume() }
      opened?.watching.stop()
      disconnect()
    }
  }
}
