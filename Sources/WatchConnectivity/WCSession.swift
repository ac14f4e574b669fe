internal import Dispatch
public import Foundation
internal import PropertyLists
internal import Synchronization
internal import Syscalls
internal import Wormhole

/// How far a session is.
public enum WCSessionActivationState: Int, Sendable {
  /// It has not been activated, or the phone has changed to another watch.
  case notActivated = 0
  /// The phone is changing to another watch.
  case inactive = 1
  /// It is in use.
  case activated = 2
}

/// Between the phone's app and the watch's, which here are two processes that share a container.
///
/// What each process is, it is told from outside: by `WORMHOLE_ROLE`, `phone` or `watch`, with
/// `WORMHOLE_CONTAINER` or `WORMHOLE_GROUP`, or by ``configure(_:container:watch:settings:)``.
/// Neither `os(iOS)` nor `os(watchOS)` is true here, so all members are there in both roles.
///
/// May be used from any thread.
public class WCSession: NSObject, @unchecked Sendable {
  // All that changes is behind monitors, or used on one queue only.

  /// The session of this process.
  public static let `default` = WCSession(part: nil)

  /// Whether this process is one side of a pairing: false if nobody has said which, and where.
  public static func isSupported() -> Bool { (try? part()) != nil }

  /// Where delegates are called from the activation's callback on: held back until that is over.
  let callbacks: DispatchQueue
  /// Where the activation's callback is, which comes before all others.
  let firstCallbacks = DispatchQueue(label: "wormhole.watchconnectivity.delegate")
  /// Where all is done that takes time, or waits; nobody waits for it.
  let work = DispatchQueue(label: "wormhole.watchconnectivity.work")
  /// Where ends of transfers wait for their time.
  let ends = DispatchQueue(label: "wormhole.watchconnectivity.ends")
  /// Where handlers of messages are called.
  let replies = DispatchQueue(label: "wormhole.watchconnectivity.replies")

  let fixedPart: Part?
  let state = Monitor(State())
  /// By watch: what was sent to one that the phone has left is its affair until it comes back.
  private let transfers = Monitor<[String: Transfers]>([:])
  /// What was found to be paired last.
  let known = Monitor((version: -1, state: Pairing.State()))
  let unhandled = Monitor<String?>(nil)
  let messagesWaiting = Monitor(0)
  let later = LaterLook()
  /// Messages that wait until the phone's app was started.
  let waking = Monitor<[Action]?>(nil)

  struct State {
    weak var delegate: (any WCSessionDelegate)?
    /// Who has been told of the activation.
    weak var told: AnyObject?
    var activation = WCSessionActivationState.notActivated
    /// Whether an activation is under way.
    var isActivating = false
    /// Whether it is to be activated again once it is deactivated.
    var isWantedAgain = false
    /// Whether callbacks are held back.
    var isHeldBack = true
    var part: Part?
    var opened: Opened?
    var connection: Connection?
    /// What was reported last.
    var report: Report?
    /// Whether ends of transfers may have been declined, and are to be told again.
    var wantsEnds = false
    /// What is taken of what comes; nil for all.
    var takenKinds: Set<TakenKind>?
  }

  /// The container, for as long as the session is.
  struct Opened: Sendable {
    let hole: Wormhole
    let pairing: Pairing
    let watching: Wormhole.Subscription
  }

  init(part: Part?) {
    fixedPart = part
    callbacks = DispatchQueue(
      label: "wormhole.watchconnectivity.delegate.held", target: firstCallbacks)
    callbacks.suspend()
    super.init()
  }

  /// A session beside others in one process, for tests.
  package convenience init(
    role: Role, place: Place, watch: String = Pairing.State.usualWatch,
    settings: Settings = Settings()
  ) {
    self.init(part: Part(role: role, place: place, watch: watch, settings: settings))
  }

  deinit {
    let (opened, connection, isHeldBack) = state.withLock {
      ($0.opened, $0.connection, $0.isHeldBack)
    }
    opened?.watching.stop()
    connection?.end()
    // A queue must not go while it is held back.
    if isHeldBack { callbacks.resume() }
  }

  /// Is told what comes; the session does not keep it.
  ///
  /// While there is none nothing is taken: it waits for the next delegate.
  public var delegate: (any WCSessionDelegate)? {
    get { state.withLock { $0.delegate } }
    set {
      state.withLock { $0.delegate = newValue }
      work.async { [weak self] in self?.review(again: true) }
    }
  }

  /// What comes and may be left where it is.
  package enum TakenKind: Hashable, Sendable {
    case userInfo, complication, blob, context
  }

  /// What is taken of what comes; the rest stays where it is.
  ///
  /// Nil for all.
  package var takenKinds: Set<TakenKind>? {
    get { state.withLock { $0.takenKinds } }
    set {
      let isNew = state.withLock { state in
        defer { state.takenKinds = newValue }
        return state.takenKinds != newValue
      }
      guard isNew else { return }
      work.async { [weak self] in
        self?.connection?.keep(Reception?.none)
        self?.review()
      }
    }
  }

  /// How far the session is.
  public var activationState: WCSessionActivationState { state.withLock { $0.activation } }

  var part: Part? { state.withLock { $0.part } }
  var connection: Connection? { state.withLock { $0.connection } }
  var settings: Settings { part?.settings ?? Settings() }

  func transfers(to watch: String) -> Transfers {
    transfers.withLock { all in
      let transfers = all[watch] ?? Transfers()
      all[watch] = transfers
      return transfers
    }
  }

  /// Forgets what was so in a container that is there no more.
  func forget() {
    transfers.withLock { $0 = [:] }
    known.withLock { $0 = (-1, Pairing.State()) }
  }

  /// Says that the delegate has no method for what has come.
  package func isUnhandled(_ method: String) { unhandled.withLock { $0 = method } }

  // MARK: What is paired

  /// What is so now; nil before the session was first activated, or if it cannot be had.
  var pairingState: Pairing.State? {
    guard let pairing = state.withLock({ $0.opened })?.pairing else { return nil }
    do throws(WormholeError) {
      return try look(at: pairing)
    } catch {
      DropInLog.tell(.error, error)
      return nil
    }
  }

  func look(at pairing: Pairing) throws(WormholeError) -> Pairing.State {
    let (state, version) = try pairing.versioned
    note(state, version)
    return state
  }

  func note(_ state: Pairing.State, _ version: Int) {
    known.withLock { if $0.version < version { $0 = (version, state) } }
  }

  /// Whether the counterpart would get a message now.
  ///
  /// The phone's app need not run for that, if somebody has said how it is started.
  public var isReachable: Bool {
    guard activationState == .activated, let connection, let pairing = pairingState else {
      return false
    }
    do throws(WormholeError) {
      return try connection.isReachable(pairing)
    } catch {
      DropInLog.tell(.error, error)
      return false
    }
  }

  /// Whether the phone has a watch; on the watch, whether the phone has this one.
  public var isPaired: Bool {
    guard let part, let pairing = pairingState else { return false }
    return part.isPaired(pairing)
  }

  /// Whether the counterpart's app is installed; on the phone the watch's.
  ///
  /// Code that asks so in both roles, because none of the systems is there, means the counterpart.
  public var isWatchAppInstalled: Bool { isCounterpartInstalled }
  /// Whether the counterpart's app is installed; on the watch the phone's.
  ///
  /// See ``isWatchAppInstalled``.
  public var isCompanionAppInstalled: Bool { isCounterpartInstalled }

  private var isCounterpartInstalled: Bool {
    guard let part, let pairing = pairingState else { return false }
    return part.hasCounterpart(pairing)
  }

  /// Whether the watch app's complication is on the active face.
  public var isComplicationEnabled: Bool {
    pairingState?.hasComplication ?? false
  }

  /// How many complication transfers are left today; none while there is no complication.
  public var remainingComplicationUserInfoTransfers: Int {
    pairingState?.complicationTransfersLeft(day: Self.today, limit: settings.complicationBudget)
      ?? 0
  }

  static var today: Int { Int(Date().timeIntervalSince1970 / 86_400) }

  /// Whether the phone was started anew and has not been unlocked since, so that it cannot be
  /// reached.
  public var iOSDeviceNeedsUnlockAfterRebootForReachability: Bool {
    pairingState?.isPhoneLocked ?? false
  }

  /// A directory of the phone's for the active watch, which goes with the watch or its app; nil if
  /// there is none, and on the watch.
  public var watchDirectoryURL: URL? {
    guard part?.role == .phone, let pairing = state.withLock({ $0.opened })?.pairing,
      let watch = pairingState?.active
    else { return nil }
    do {
      return try pairing.directory(of: watch).map { URL(fileURLWithPath: $0, isDirectory: true) }
    } catch {
      DropInLog.tell(.error, error)
      return nil
    }
  }

  /// Whether there is something that has come, and that the delegate has not been given yet.
  public var hasContentPending: Bool {
    guard let connection else { return false }
    do throws(WormholeError) {
      return try connection.hasContentPending
    } catch {
      DropInLog.tell(.error, error)
      return false
    }
  }
}

extension Pairing.State {
  var hasComplication: Bool {
    guard let watch = activeWatch else { return false }
    return watch.isAppInstalled && watch.isComplicationEnabled
  }
}

extension WCSession.Part {
  func isPaired(_ pairing: Pairing.State) -> Bool {
    role == .watch ? pairing.watches[watch] != nil : pairing.activeWatch != nil
  }

  func hasCounterpart(_ pairing: Pairing.State) -> Bool {
    switch role {
    case .phone: pairing.activeWatch?.isAppInstalled ?? false
    case .watch:
      pairing.watches[watch] != nil && pairing.isPhoneAppInstalled && !pairing.isWatchOnly
    }
  }
}
