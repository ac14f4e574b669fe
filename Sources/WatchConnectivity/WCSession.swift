internal import Dispatch
public import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The activation state of a session.
public enum WCSessionActivationState: Int, Sendable {
  /// The session has not been activated, or the phone has changed to another watch.
  case notActivated = 0
  /// The phone is changing to another watch.
  case inactive = 1
  /// The session is in use.
  case activated = 2
}

/// A session between the phone's app and the watch's app: here, two processes that share a
/// container.
///
/// Each process gets its role from outside: from `WORMHOLE_ROLE`, `phone` or `watch`, with
/// `WORMHOLE_CONTAINER` or `WORMHOLE_GROUP`, or from ``configure(_:container:watch:settings:)``.
/// Neither `os(iOS)` nor `os(watchOS)` is true here, so all members exist in both roles.
///
/// A session may be used from any thread.
public class WCSession: NSObject, @unchecked Sendable {
  // All mutable state is behind monitors, or used on a single queue.

  /// The session of this process.
  public static let `default` = WCSession(part: nil)

  /// Whether this process has a role in a pairing: false if neither its role nor its container is
  /// configured.
  public static func isSupported() -> Bool { (try? part()) != nil }

  /// The queue on which delegates are called, from the activation's callback on.
  ///
  /// The queue is suspended until that callback has returned.
  let callbacks: DispatchQueue
  /// The queue of the activation's callback, which precedes all other callbacks.
  let firstCallbacks = DispatchQueue(label: "wormhole.watchconnectivity.delegate")
  /// The queue for all work that takes time or waits; no caller waits for this queue.
  let work = DispatchQueue(label: "wormhole.watchconnectivity.work")
  /// The queue on which outcomes of transfers wait until the delegate may be notified.
  let ends = DispatchQueue(label: "wormhole.watchconnectivity.ends")
  /// The queue on which handlers of messages are called.
  let replies = DispatchQueue(label: "wormhole.watchconnectivity.replies")

  let fixedPart: SessionPart?
  let state = Monitor(State())
  /// The transfers by watch.
  ///
  /// When the phone changes to another watch, the transfers to the previous watch stay with the
  /// previous watch until the phone changes back.
  private let transfers = Monitor<[String: Transfers]>([:])
  /// The pairing state that was read last.
  let known = Monitor((version: -1, state: Pairing.State()))
  let unhandled = Monitor<String?>(nil)
  let messagesWaiting = Monitor(0)
  /// Reads the pairing again after a failed attempt.
  let pairingReader: Worker
  /// The observers of the session's properties.
  let observers = SessionObservers()
  /// Messages that wait until the phone's app has started.
  let waking = Monitor<[Action]?>(nil)

  struct State {
    weak var delegate: (any WCSessionDelegate)?
    /// The delegate that was notified of the activation.
    weak var told: AnyObject?
    var machine = SessionMachine()
    var part: SessionPart?
    var opened: OpenSession?
    var connection: Connection?
    /// Whether outcomes of transfers may have been declined and must be delivered again.
    var wantsEnds = false
    /// The kinds of arriving content that the session receives; nil for all kinds.
    var takenKinds: Set<TakenKind>?
  }

  /// The open container, for the lifetime of the session.
  struct OpenSession: Sendable {
    let container: SharedContainer
    let pairing: Pairing
    let watching: Subscription
  }

  init(part: SessionPart?) {
    fixedPart = part
    callbacks = DispatchQueue(
      label: "wormhole.watchconnectivity.delegate.held", target: firstCallbacks)
    callbacks.suspend()
    pairingReader = Worker(on: work, staysOnQueue: true)
    super.init()
    pairingReader.begin { [weak self] in self?.pairingChanged() }
    observers.begin(for: self)
  }

  /// Creates a session beside others in one process, for tests.
  package convenience init(
    role: Role, place: ContainerPlace, watch: String = Pairing.State.usualWatch,
    settings: Settings = Settings()
  ) {
    self.init(part: SessionPart(role: role, place: place, watch: watch, settings: settings))
  }

  deinit {
    let (opened, connection, isHeldBack) = state.withLock {
      ($0.opened, $0.connection, $0.machine.isHeldBack)
    }
    opened?.watching.stop()
    connection?.end()
    // A dispatch queue must not be deallocated while it is suspended.
    if isHeldBack { callbacks.resume() }
  }

  /// The object that receives notifications and content; the session does not retain it.
  ///
  /// Without a delegate the session receives nothing: content waits for the next delegate.
  public var delegate: (any WCSessionDelegate)? {
    get { state.withLock { $0.delegate } }
    set {
      state.withLock { $0.delegate = newValue }
      work.async { [weak self] in self?.review(again: true) }
    }
  }

  /// A kind of arriving content that the session can leave in the container.
  package enum TakenKind: Hashable, Sendable {
    case userInfo, complication, blob, context
  }

  /// The kinds of arriving content that the session receives; all other content stays in the
  /// container.
  ///
  /// Nil for all kinds.
  package var takenKinds: Set<TakenKind>? {
    get { state.withLock { $0.takenKinds } }
    set {
      let isNew = state.withLock { exchange(&$0.takenKinds, with: newValue) != newValue }
      guard isNew else { return }
      work.async { [weak self] in
        self?.connection?.keep(Reception?.none)
        self?.review()
      }
    }
  }

  /// The activation state of the session.
  public var activationState: WCSessionActivationState { state.withLock { $0.machine.activation } }

  var part: SessionPart? { state.withLock { $0.part } }
  var connection: Connection? { state.withLock { $0.connection } }
  var settings: Settings { part?.settings ?? Settings() }

  func transfers(to watch: String) -> Transfers {
    transfers.withLock { all in
      let transfers = all[watch] ?? Transfers()
      all[watch] = transfers
      return transfers
    }
  }

  /// Forgets the pairing of a container that no longer exists at its path, and ends the transfers
  /// in it.
  func forget() {
    let lost = transfers.withLock { exchange(&$0, with: [:]) }
    for transfers in lost.values { end(lost: transfers) }
    known.withLock { $0 = (-1, Pairing.State()) }
  }

  /// Records that the delegate lacks the method for arrived content.
  package func isUnhandled(_ method: String) { unhandled.withLock { $0 = method } }

  // MARK: Pairing

  /// The current pairing state; nil before the first activation, or if the state cannot be read.
  ///
  /// After a temporary failure, the observers of properties read the state again a second later.
  var pairingState: Pairing.State? {
    guard let opened = state.withLock({ $0.opened }) else { return nil }
    var mayPass = false
    let found = SilentCall.attempt { () throws(WormholeError) -> Pairing.State in
      do throws(WormholeError) {
        return try look(at: opened)
      } catch {
        mayPass = error.mayPass
        throw error
      }
    }
    if found == nil, mayPass { pairingReader.retry() }
    return found
  }

  func look(at opened: OpenSession) throws(WormholeError) -> Pairing.State {
    let (found, version) = try opened.pairing.versioned
    state.withLock { state in
      // The versions of a container that was closed in the meantime would hide those of the next.
      guard state.opened?.container === opened.container else { return }
      known.withLock { if $0.version < version { $0 = (version, found) } }
    }
    return found
  }

  /// Whether the counterpart would receive a message now.
  ///
  /// If a start of the phone's app is registered, the phone's app need not run.
  public var isReachable: Bool {
    guard activationState == .activated, let connection, let pairing = pairingState else {
      return false
    }
    do throws(WormholeError) {
      return try connection.isReachable(pairing)
    } catch {
      tryLater(error)
      return false
    }
  }

  /// Whether the phone has a watch; on the watch, whether the phone is paired with this watch.
  public var isPaired: Bool {
    guard let part, let pairing = pairingState else { return false }
    return part.isPaired(pairing)
  }

  /// Whether the counterpart's app is installed; on the phone, the watch's app.
  ///
  /// Code that reads this property in both roles, because neither system's condition is true here,
  /// means the counterpart.
  public var isWatchAppInstalled: Bool { isCounterpartInstalled }
  /// Whether the counterpart's app is installed; on the watch, the phone's app.
  ///
  /// See ``isWatchAppInstalled``.
  public var isCompanionAppInstalled: Bool { isCounterpartInstalled }

  private var isCounterpartInstalled: Bool {
    guard let part, let pairing = pairingState else { return false }
    return part.hasCounterpart(pairing)
  }

  /// Whether the phone was restarted and has not been unlocked since, and therefore is unreachable.
  public var iOSDeviceNeedsUnlockAfterRebootForReachability: Bool {
    pairingState?.isPhoneLocked ?? false
  }

  /// The phone's directory for the active watch; nil if there is no active watch, and on the watch.
  ///
  /// The directory is removed when the watch is unpaired or its app uninstalled.
  public var watchDirectoryURL: URL? {
    guard part?.role == .phone, let pairing = state.withLock({ $0.opened })?.pairing,
      let watch = pairingState?.active
    else { return nil }
    let directory = SilentCall.attempt { try pairing.directory(of: watch) } ?? nil
    return directory.map { URL(fileURLWithPath: $0, isDirectory: true) }
  }

  /// Whether content has arrived that the delegate has not received yet.
  public var hasContentPending: Bool {
    guard let connection else { return false }
    return SilentCall.attempt { try connection.hasContentPending } ?? false
  }
}

extension WCSession.SessionPart {
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
