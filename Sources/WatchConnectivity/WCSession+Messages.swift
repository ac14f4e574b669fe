internal import Dispatch
public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages: content that makes sense only at once.
extension WCSession {
  /// Sends a message to the counterpart if it runs, or fails.
  ///
  /// Messages arrive in the order of the calls. One of the two handlers is called, once, on a queue
  /// that is not the main queue, or on the actor to which the handler is isolated, and never from
  /// inside this call. A message of the watch starts the phone's app if a start is registered; a
  /// message of the phone never starts the watch's app.
  ///
  /// - Parameters:
  ///   - message: property-list values.
  ///   - replyHandler: receives the reply; nil if no reply is expected.
  ///   - errorHandler: receives the reason why there is no reply, or why the message was not
  ///     handled.
  public func sendMessage(
    _ message: [String: Any], replyHandler: (@isolated(any) ([String: Any]) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    let handler = replyHandler.map { Handler($0) }
    let kind: SessionMessageKind = replyHandler == nil ? .dictionary : .dictionaryWithReply
    send(kind, errorHandler) { (settings) throws(WCError) in
      try SessionPayload.take(message, largest: settings.largestMessage)
    } reply: { value in
      handler?.call(value.foundationDictionary ?? [:])
    }
  }

  /// Sends data to the counterpart if it runs, or fails.
  ///
  /// The same as ``sendMessage(_:replyHandler:errorHandler:)``, for data.
  public func sendMessageData(
    _ data: Data, replyHandler: (@isolated(any) (Data) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    let handler = replyHandler.map { Handler($0) }
    let kind: SessionMessageKind = replyHandler == nil ? .data : .dataWithReply
    send(kind, errorHandler) { (settings) throws(WCError) in
      guard data.count <= settings.largestMessage else {
        throw SessionPayload.tooLarge(data.count, settings.largestMessage)
      }
      return .data(data)
    } reply: { value in
      handler?.call(value.dataValue ?? Data())
    }
  }

  /// Returns the connection and the pairing for sending; throws the reason why nothing can be sent.
  func ready() throws(WCError) -> (Connection, Pairing.State) {
    let (activation, connection, hasDelegate) = state.withLock {
      ($0.machine.activation, $0.connection, $0.delegate != nil)
    }
    switch activation {
    case .activated: break
    case .inactive: throw WCError(.sessionInactive)
    case .notActivated:
      // Throws the error for the step that must come first.
      if fixedPart == nil { _ = try Self.part() }
      throw WCError(hasDelegate ? .sessionNotActivated : .sessionMissingDelegate)
    }
    guard hasDelegate else { throw WCError(.sessionMissingDelegate) }
    guard let pairing = pairingState else {
      throw WCError(
        .genericError, "the state of the pairing is unreadable, for the reason in the log")
    }
    guard let connection else {
      guard pairing.active != nil else { throw WCError(.deviceNotPaired) }
      throw WCError(.genericError, "the session is not connected with the active watch yet")
    }
    if let obstacle = connection.obstacle(pairing) { throw obstacle }
    return (connection, pairing)
  }

  private func send(
    _ kind: SessionMessageKind, _ errorHandler: (@isolated(any) (any Error) -> Void)?,
    _ value: (Settings) throws(WCError) -> PropertyListValue,
    reply: @escaping @Sendable (PropertyListValue) -> Void
  ) {
    let errorHandler = errorHandler.map { Handler($0) }
    do throws(WCError) {
      let (connection, pairing) = try ready()
      let settings = settings
      let value = try value(settings)
      guard connection.carriesMessages(pairing) else { throw WCError(.notReachable) }
      // The time limit includes the start of the counterpart.
      let deadline = Instant.now + settings.messageTimeout
      let ask = { @Sendable [replies] in
        connection.peer.inquire(
          value, as: PropertyListValue.self, kind: kind.rawValue,
          within: max(.zero, deadline - .now), on: replies
        ) { result, wasSeen in
          switch Self.end(result, wasSeen, kind) {
          case .success(let value?): reply(value)
          case .success(nil): break
          case .failure(let error): errorHandler?.call(error)
          }
        }
      }
      if connection.role == .watch {
        wakeIfNeeded(connection, settings.messageTimeout, ask)
      } else {
        ask()
      }
    } catch {
      replies.async { errorHandler?.call(error) }
    }
  }

  /// - Returns: the reply, or nil for a message that expects no reply.
  private static func end(
    _ result: Result<PropertyListValue, WormholeError>, _ wasSeen: Bool, _ kind: SessionMessageKind
  ) -> Result<PropertyListValue?, WCError> {
    switch result {
    case .success(let value):
      switch Answer(value) {
      case .handled where kind.wantsReply:
        return .failure(
          WCError(.messageReplyFailed, "the counterpart handled the message without a reply"))
      case .handled: return .success(nil)
      case .reply(let value): return .success(value)
      case .failure(let code, let reason): return .failure(WCError(code, reason))
      }
    case .failure(let error):
      switch error.code {
      case .unreachable where wasSeen:
        return .failure(
          WCError(kind.wantsReply ? .messageReplyFailed : .deliveryFailed, "\(error)"))
      case .timedOut:
        return .failure(
          WCError(kind.wantsReply ? .messageReplyTimedOut : .transferTimedOut, "\(error)"))
      default: return .failure(WCError(error))
      }
    }
  }

  // MARK: Waking

  /// Sends the request at once, or after the phone's app has started; in the order of the calls.
  private func wakeIfNeeded(
    _ connection: Connection, _ timeout: Duration, _ ask: @escaping @Sendable () -> Void
  ) {
    let isWaiting = waking.withLock { waiting in
      guard waiting != nil else { return false }
      waiting?.append(Action(ask))
      return true
    }
    if isWaiting { return }
    guard !connection.isPeerThere, connection.isStartable else { return ask() }
    let isFirst = waking.withLock { waiting in
      defer { waiting = (waiting ?? []) + [Action(ask)] }
      return waiting == nil
    }
    guard isFirst else { return }
    // The wake-up takes as long as the start of the program.
    DispatchQueue.global().async { [self] in
      // The waiting requests are sent after a failure too, and each reports that the counterpart
      // is unreachable.
      DropInLog.attempt { try connection.peer.wake(within: timeout) }
      while let ask = nextAwaited() { ask.perform() }
    }
  }

  /// Returns the next waiting request.
  ///
  /// If there is none, returns nil and ends the waiting.
  private func nextAwaited() -> Action? {
    waking.withLock { waiting in
      guard waiting?.isEmpty == false else {
        waiting = nil
        return nil
      }
      return waiting?.removeFirst()
    }
  }
}
