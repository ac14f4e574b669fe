internal import WormholeContainerStorage

/// The life of a session as a pure state machine: its activation, the watch that it is connected
/// with, its deactivation, and the changes that its delegate is notified of.
///
/// The machine knows no container, delegate or queue. Each method returns the actions that follow,
/// in their order; the session performs them on its `work` queue after it has released the lock.
///
/// Two queues call the delegate. The first has the activation's callback; the second has all other
/// callbacks and is suspended until the activation's callback has returned. Therefore no callback
/// precedes the activation's callback, and none follows the one about the deactivation.
struct SessionMachine: Hashable {
  enum Action: Hashable {
    /// Open the container that is at its path, and connect with the active watch.
    case attempt
    /// Notify the delegate of the activation on the first queue, then resume the second queue.
    case tellActivation
    /// Notify the delegate of the activation on the second queue, unless it was notified already.
    case tellAgain
    /// Close the container, which is no longer the one at its path, and forget what it contained.
    case close
    case connect, disconnect
    case tellInactive
    /// Suspend the second queue after the callbacks that wait on it, the last of which is, if one
    /// is to be told, the deactivation's.
    case holdBack(isTold: Bool)
    /// Start or stop receiving, as the state of the pairing requires.
    case review
    /// Compare the state of the pairing with what the delegate knows.
    case observe
  }

  /// The values whose changes are reported to the delegate.
  struct Report: Hashable {
    /// On the phone: whether a watch is paired, has the app, and shows the complication.
    var watch = [false, false, false]
    /// The number of the active watch's directory.
    ///
    /// One notice may cover an uninstallation and the next installation, or an end of the pairing
    /// and the next pairing: then only this number differs.
    var directory: Int?
    var isCounterpartInstalled = false
    var isReachable = false
  }

  enum SessionChange: Hashable { case watchState, companion, reachability }

  private(set) var activation = WCSessionActivationState.notActivated
  /// Whether an activation is in progress, its callback about a failure included.
  private(set) var isActivating = false
  /// Whether the session is to be activated again after its deactivation.
  private var isWantedAgain = false
  /// Whether the second queue is suspended, or is about to be.
  private(set) var isHeldBack = true
  /// The watch that the session is connected with.
  private(set) var watch: String?
  /// The previous report; nil from the activation to the first report, which tells nothing.
  private var report: Report?

  // MARK: Activation

  /// The app activates the session.
  ///
  /// - Parameter isInPlace: whether the container of an active session is still the one at its
  ///   path.
  mutating func activate(isInPlace: Bool) -> [Action] {
    switch activation {
    case .inactive:
      isWantedAgain = !Mutants.has(.forgetWanted)
      return []
    case .notActivated:
      guard !isActivating else { return [] }
      (isActivating, isWantedAgain) = (true, false)
      return [.attempt]
    case .activated: return isInPlace ? [.tellAgain] : beginAnew()
    }
  }

  /// Ends the session in the previous container, and activates it in the container that is there
  /// now: no state of the previous container is valid there.
  private mutating func beginAnew() -> [Action] {
    (activation, isWantedAgain, watch) = (.inactive, true, nil)
    return [.close, .holdBack(isTold: false)]
  }

  /// An attempt has succeeded; without an active watch, the session is active and connected with
  /// none.
  mutating func activated(with watch: String?) -> [Action] {
    (isActivating, activation, self.watch, report) = (false, .activated, watch, nil)
    // The state at this moment is the first report; each later change is reported.
    return [.observe, .tellActivation, .review]
  }

  /// The delegate is about to be notified that the activation has failed.
  mutating func activationFailed() { isActivating = false }

  /// The delegate has been notified of the activation.
  ///
  /// - Returns: whether the second queue is to be resumed.
  mutating func activationIsTold() -> Bool {
    defer { isHeldBack = false }
    return isHeldBack
  }

  // MARK: Pairing

  /// The pairing may have changed.
  ///
  /// - Parameter active: on the phone the active watch, on a watch the watch itself.
  mutating func pairingChanged(active: String?) -> [Action] {
    guard activation == .activated else { return [] }
    guard watch != active else { return [.review, .observe] }
    switch (watch, active) {
    case (nil, _): return [.connect, .review, .observe]
    case (_, nil):
      // The session remains active: apps unpair the last watch and pair the next one.
      watch = nil
      return [.disconnect, .review, .observe]
    default:
      (activation, watch) = (.inactive, nil)
      return [.tellInactive, .disconnect, .holdBack(isTold: true)]
    }
  }

  /// The session has been connected with a watch after its activation.
  mutating func connected(with watch: String?) { self.watch = watch }

  /// The second queue is about to be suspended, and the delegate notified of the deactivation.
  mutating func deactivating() { (activation, isHeldBack) = (.notActivated, true) }

  /// The second queue is suspended; the app may have activated the session again since then.
  mutating func deactivated() -> [Action] {
    guard isWantedAgain else { return [] }
    isWantedAgain = false
    return activate(isInPlace: true)
  }

  /// The session has ended for good.
  ///
  /// - Returns: whether the second queue is to be resumed.
  mutating func end() -> Bool {
    (activation, watch) = (.notActivated, nil)
    return activationIsTold()
  }

  // MARK: Reports

  /// Returns the changes since the previous report; nil if the values could not be read: until the
  /// next report the session's properties say that no counterpart exists.
  mutating func changes(
    to now: Report?, active: String?, of role: WCSession.Role
  ) -> [SessionChange] {
    guard activation == .activated else { return [] }
    // The notice of a change to another watch deactivates the session; until then the delegate is
    // told of nothing else.
    if role == .phone, let watch, let active, watch != active, !Mutants.has(.tellOtherWatch) {
      return []
    }
    guard let now else {
      report = report ?? Report()
      return []
    }
    defer { report = now }
    guard let before = report else { return [] }
    var changes: [SessionChange] = []
    if role == .phone, (before.watch, before.directory) != (now.watch, now.directory) {
      changes.append(.watchState)
    }
    if role == .watch, before.isCounterpartInstalled != now.isCounterpartInstalled {
      changes.append(.companion)
    }
    if before.isReachable != now.isReachable { changes.append(.reachability) }
    return changes
  }
}
