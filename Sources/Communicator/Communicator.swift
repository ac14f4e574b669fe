public import Foundation
@_exported public import WatchConnectivity
internal import WormholeDropIns
internal import WormholeSyscalls

/// Sends messages to the counterpart, and passes incoming messages to the observers of their type.
///
/// The first use of the communicator or of an observation creates the communicator and activates
/// its session; if the activation fails, each further use tries again. When the phone changes to
/// another watch, the communicator continues with the new watch. May be used from any thread.
public final class Communicator: NSObject, @unchecked Sendable {
  // The mutable state is behind the monitor.

  /// The reason why a message cannot be sent.
  public enum Error: Swift.Error, Hashable, Sendable {
    /// The counterpart's reachability is lower than the message requires.
    case sessionIsNotReachable(minimumReachability: Reachability, actual: Reachability)
  }

  /// The only communicator.
  public static let shared = Communicator(.default)

  let session: WCSession
  private let delegate = SessionDelegate()
  /// Held while the observed kinds are read and set, so that two threads do not set them out of
  /// order.
  private let taking = Monitor(0)

  init(_ session: WCSession) {
    self.session = session
    super.init()
    session.takenKinds = []
    session.delegate = delegate
  }

  /// Starts to receive the kinds that are observed from now on.
  func take() {
    chooseKinds()
    activated()
  }

  /// - Parameter look: returns the observed kinds; tests delay the return.
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

  /// Returns the session, whose activation has begun.
  @discardableResult
  private func activated() -> WCSession {
    if session.activationState == .notActivated { session.activate() }
    return session
  }

  // MARK: State

  /// How well the counterpart can be reached now.
  public var currentReachability: Reachability { Reachability(activated()) }

  /// The activation state of the session.
  public var currentState: State { State(activated().activationState) }

  /// The phone's current information about its watch.
  public var currentWatchState: WatchState { WatchState(activated()) }

  /// The watch's current information about its phone.
  public var currentPhoneState: PhoneState { PhoneState(activated()) }

  /// Whether received data is still waiting for its observer.
  public var hasPendingDataToBeReceived: Bool { session.hasContentPending }

  /// The context that was sent last; empty if none was sent.
  public var mostRecentlySentContext: Context { Context(content: session.applicationContext) }
  /// The context that was received last; empty if none was received.
  public var mostRecentlyReceievedContext: Context {
    Context(content: session.receivedApplicationContext)
  }
  /// The context that was received last; empty if none was received.
  public var mostRecentlyReceivedContext: Context { mostRecentlyReceievedContext }

  // MARK: Sending

  /// Sends a message to the running counterpart.
  public func send(
    _ message: ImmediateMessage, errorHandler: (@isolated(any) (any Swift.Error) -> Void)? = nil
  ) {
    if let error = obstacle(.immediatelyReachable) {
      return fail(errorHandler.map { Handler($0) }, error)
    }
    session.sendMessage(message.packed, replyHandler: nil, errorHandler: errorHandler)
  }

  /// Sends a message to the running counterpart, and passes the reply to the message's closure.
  public func send(
    _ message: InteractiveImmediateMessage,
    errorHandler: (@isolated(any) (any Swift.Error) -> Void)? = nil
  ) {
    let errorHandler = errorHandler.map { Handler($0) }
    if let error = obstacle(.immediatelyReachable) { return fail(errorHandler, error) }
    let reply = message.reply
    session.sendMessage(message.packed) { content in
      if let message = ImmediateMessage(packed: content) {
        reply(message)
      } else {
        errorHandler?.call(WCError(.messageReplyFailed))
      }
    } errorHandler: {
      errorHandler?.call($0)
    }
  }

  /// Sends a guaranteed message.
  ///
  /// - Returns: an object that cancels the message; nil if the message was not sent.
  @discardableResult
  public func send(
    _ message: GuaranteedMessage,
    completion: (@isolated(any) (Result<Void, any Swift.Error>) -> Void)? = nil
  ) -> (any Cancellable)? {
    transfer(completion.map { Handler($0) }) { session.transferUserInfo(message.packed) }
  }

  /// Transfers a blob.
  ///
  /// - Returns: an object that cancels the blob; nil if the blob was not sent.
  @discardableResult
  public func transfer(
    _ blob: Blob, completion: (@isolated(any) (Result<Void, any Swift.Error>) -> Void)? = nil
  ) -> (any Cancellable)? {
    transfer(completion.map { Handler($0) }) { session.transferBlob(blob.packed) }
  }

  /// Transfers a blob.
  ///
  /// - Returns: an object that cancels the blob; nil if the blob was not sent.
  @discardableResult
  public func transfer(
    blob: Blob, completion: (@isolated(any) (Result<Void, any Swift.Error>) -> Void)? = nil
  ) -> (any Cancellable)? { transfer(blob, completion: completion) }

  /// Transfers the complication's content, within its budget ahead of all other transfers.
  ///
  /// - Returns: an object that cancels the transfer; nil if the content was not sent.
  @discardableResult
  public func transfer(
    _ complicationInfo: ComplicationInfo,
    completion: (@isolated(any) (Result<Int, any Swift.Error>) -> Void)? = nil
  ) -> (any Cancellable)? {
    let session = session
    let end = completion.map { completion in
      let handler = Handler(completion)
      return Handler { (result: Result<Void, any Swift.Error>) in
        handler.call(result.map { _ in session.remainingComplicationUserInfoTransfers })
      }
    }
    return transfer(end) { session.transferCurrentComplicationUserInfo(complicationInfo.packed) }
  }

  /// Sends a context to the counterpart, which receives only the latest.
  public func sync(_ context: Context) throws {
    if let error = obstacle(.backgroundOnly) { throw error }
    try session.updateApplicationContext(context.content)
  }

  private func transfer(
    _ completion: Handler<Result<Void, any Swift.Error>>?, _ send: () -> WCSessionUserInfoTransfer
  ) -> (any Cancellable)? {
    if let error = obstacle(.backgroundOnly) {
      DispatchQueue.communicator.async { completion?.call(.failure(error)) }
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

  private func fail(_ handler: Handler<any Swift.Error>?, _ error: Error) {
    DispatchQueue.communicator.async { handler?.call(error) }
  }
}

extension WCSessionUserInfoTransfer: Cancellable {}
