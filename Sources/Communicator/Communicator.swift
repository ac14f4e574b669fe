internal import DropIns
public import Foundation
internal import Syscalls
@_exported public import WatchConnectivity

/// Sends to the counterpart, and hands what comes to whoever observes its type.
///
/// It is made, and its session activated, when it or an observation is first used; should that have
/// failed, each further use tries again. When the phone changes to another watch it goes on with
/// that one. May be used from any thread.
public final class Communicator: NSObject, @unchecked Sendable {
  // What changes is behind the monitor.

  /// What a message cannot be sent for.
  public enum Error: Swift.Error, Hashable, Sendable {
    /// The counterpart cannot be reached as well as that takes.
    case sessionIsNotReachable(minimumReachability: Reachability, actual: Reachability)
  }

  /// The one there is.
  public static let shared = Communicator(.default)

  let session: WCSession
  private let delegate = SessionDelegate()
  /// Held from looking at who observes until that is what is taken.
  private let taking = Monitor(0)

  init(_ session: WCSession) {
    self.session = session
    super.init()
    session.takenKinds = []
    session.delegate = delegate
  }

  /// Takes what is observed from now on.
  func take() {
    chooseKinds()
    activate()
  }

  /// - Parameter look: says what is observed; tests take their time for it.
  func chooseKinds(_ look: () -> Set<WCSession.TakenKind> = { observed }) {
    taking.withLock { _ in session.takenKinds = look() }
  }

  static var observed: Set<WCSession.TakenKind> {
    var kinds: Set<WCSession.TakenKind> = []
    if !GuaranteedMessage.observations.isEmpty { kinds.insert(.userInfo) }
    if !ComplicationInfo.observations.isEmpty { kinds.insert(.complication) }
    if !Blob.observations.isEmpty { kinds.insert(.blob) }
    if !Context.observations.isEmpty { kinds.insert(.context) }
    return kinds
  }

  private func activate() {
    if session.activationState == .notActivated { session.activate() }
  }

  // MARK: What is so

  /// How well the counterpart can be reached now.
  public var currentReachability: Reachability {
    activate()
    return Reachability(session)
  }

  /// How far the session is.
  public var currentState: State {
    activate()
    return State(session.activationState)
  }

  /// What the phone knows of its watch now.
  public var currentWatchState: WatchState {
    activate()
    return WatchState(session)
  }

  /// What the watch knows of its phone now.
  public var currentPhoneState: PhoneState {
    activate()
    return PhoneState(session)
  }

  /// Whether there is something that has come and was not handed out yet.
  public var hasPendingDataToBeReceived: Bool { session.hasContentPending }

  /// The state that was told last; empty if none.
  public var mostRecentlySentContext: Context { Context(content: session.applicationContext) }
  /// The state that has come last; empty if none.
  public var mostRecentlyReceievedContext: Context {
    Context(content: session.receivedApplicationContext)
  }
  /// The state that has come last; empty if none.
  public var mostRecentlyReceivedContext: Context { mostRecentlyReceievedContext }

  // MARK: Sending

  /// Sends a message to the counterpart that runs now.
  @preconcurrency
  public func send(
    _ message: ImmediateMessage, errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    if let error = obstacle(.immediatelyReachable) { return fail(errorHandler, error) }
    session.sendMessage(message.packed, replyHandler: nil, errorHandler: errorHandler)
  }

  /// Sends a message to the counterpart that runs now, and hands its reply to the message's
  /// closure.
  @preconcurrency
  public func send(
    _ message: InteractiveImmediateMessage, errorHandler: ImmediateMessage.ErrorHandler? = nil
  ) {
    if let error = obstacle(.immediatelyReachable) { return fail(errorHandler, error) }
    let reply = message.reply
    session.sendMessage(message.packed) { content in
      if let message = ImmediateMessage(packed: content) {
        reply(message)
      } else {
        errorHandler?(WCError(.messageReplyFailed))
      }
    } errorHandler: {
      errorHandler?($0)
    }
  }

  /// Sends a guaranteed message.
  ///
  /// - Returns: what cancels it; nil if it was not sent.
  @discardableResult
  @preconcurrency
  public func send(
    _ message: GuaranteedMessage, completion: GuaranteedMessage.Completion? = nil
  ) -> (any Cancellable)? {
    transfer(completion) { session.transferUserInfo(message.packed) }
  }

  /// Transfers a blob.
  ///
  /// - Returns: what cancels it; nil if it was not sent.
  @discardableResult
  @preconcurrency
  public func transfer(
    _ blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? {
    transfer(completion) { session.transferBlob(blob.packed) }
  }

  /// Transfers a blob.
  ///
  /// - Returns: what cancels it; nil if it was not sent.
  @discardableResult
  @preconcurrency
  public func transfer(
    blob: Blob, completion: Blob.Completion? = nil
  ) -> (any Cancellable)? { transfer(blob, completion: completion) }

  /// Transfers what the complication shows, within its budget before all else.
  ///
  /// - Returns: what cancels it; nil if it was not sent.
  @discardableResult
  @preconcurrency
  public func transfer(
    _ complicationInfo: ComplicationInfo, completion: ComplicationInfo.Completion? = nil
  ) -> (any Cancellable)? {
    let session = session
    var end: GuaranteedMessage.Completion?
    if let completion {
      end = { result in
        completion(result.map { _ in session.remainingComplicationUserInfoTransfers })
      }
    }
    return transfer(end) { session.transferCurrentComplicationUserInfo(complicationInfo.packed) }
  }

  /// Tells the counterpart a state, of which the latest counts.
  public func sync(_ context: Context) throws {
    if let error = obstacle(.backgroundOnly) { throw error }
    try session.updateApplicationContext(context.content)
  }

  private func transfer(
    _ completion: GuaranteedMessage.Completion?, _ send: () -> WCSessionUserInfoTransfer
  ) -> (any Cancellable)? {
    if let error = obstacle(.backgroundOnly) {
      DispatchQueue.communicator.async { completion?(.failure(error)) }
      return nil
    }
    return delegate.keep(completion, of: send)
  }

  private func obstacle(_ minimum: Reachability) -> Error? {
    let actual = currentReachability
    let isEnough =
      minimum == .backgroundOnly ? actual != .notReachable : actual == .immediatelyReachable
    return isEnough
      ? nil : .sessionIsNotReachable(minimumReachability: minimum, actual: actual)
  }

  private func fail(_ handler: ImmediateMessage.ErrorHandler?, _ error: Error) {
    DispatchQueue.communicator.async { handler?(error) }
  }
}

extension WCSessionUserInfoTransfer: Cancellable {}
