internal import Dispatch
internal import DropIns
public import Foundation
internal import PropertyLists
internal import Syscalls
internal import Wormhole

/// What only makes sense now.
extension WCSession {
  /// Sends a message to the counterpart that runs, or fails.
  ///
  /// Messages come in the order of the calls. Of the two handlers one is called, once, on a queue
  /// that is not the main one, and never from inside this call. The watch's message starts the
  /// phone's app, if somebody has said how; the phone's never starts the watch's.
  ///
  /// - Parameters:
  ///   - message: property-list values.
  ///   - replyHandler: gets the reply; nil if none is wanted.
  ///   - errorHandler: is told why there is none, or why it was not handled.
  @preconcurrency
  public func sendMessage(
    _ message: [String: Any], replyHandler: (@Sendable ([String: Any]) -> Void)?,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    let kind: MessageKind = replyHandler == nil ? .dictionary : .dictionaryWithReply
    send(kind, errorHandler) { (settings) throws(WCError) in
      try Payload.take(message, largest: settings.largestMessage)
    } reply: { value in
      replyHandler?(value.foundationDictionary ?? [:])
    }
  }

  /// Sends data to the counterpart that runs, or fails.
  ///
  /// As ``sendMessage(_:replyHandler:errorHandler:)``.
  @preconcurrency
  public func sendMessageData(
    _ data: Data, replyHandler: (@Sendable (Data) -> Void)?,
    errorHandler: (@Sendable (any Error) -> Void)? = nil
  ) {
    let kind: MessageKind = replyHandler == nil ? .data : .dataWithReply
    send(kind, errorHandler) { (settings) throws(WCError) in
      guard data.count <= settings.largestMessage else {
        throw Payload.tooLarge(data.count, settings.largestMessage)
      }
      return .data(data)
    } reply: { value in
      replyHandler?(value.dataValue ?? Data())
    }
  }

  /// What is in the way of sending anything at all; otherwise whom to send it to.
  func ready() throws(WCError) -> (Connection, Pairing.State) {
    let (activation, connection, hasDelegate) = state.withLock {
      ($0.activation, $0.connection, $0.delegate != nil)
    }
    switch activation {
    case .activated: break
    case .inactive: throw WCError(.sessionInactive)
    case .notActivated:
      // What would have to be done first.
      if fixedPart == nil { _ = try Self.part() }
      throw WCError(hasDelegate ? .sessionNotActivated : .sessionMissingDelegate)
    }
    guard hasDelegate else { throw WCError(.sessionMissingDelegate) }
    guard let pairing = pairingState else {
      throw WCError(.genericError, "what is paired cannot be read")
    }
    guard let connection else { throw WCError(.deviceNotPaired) }
    if let obstacle = connection.obstacle(pairing) { throw obstacle }
    return (connection, pairing)
  }

  private func send(
    _ kind: MessageKind, _ errorHandler: (@Sendable (any Error) -> Void)?,
    _ value: (Settings) throws(WCError) -> PropertyListValue,
    reply: @escaping @Sendable (PropertyListValue) -> Void
  ) {
    do throws(WCError) {
      let (connection, pairing) = try ready()
      let settings = settings
      let value = try value(settings)
      guard connection.carriesMessages(pairing) else { throw WCError(.notReachable) }
      // The time that the counterpart takes to start is counted in.
      let deadline = Instant.now + settings.messageTimeout
      let ask = { @Sendable [replies] in
        connection.peer.inquire(
          value, as: PropertyListValue.self, kind: kind.rawValue,
          within: max(.zero, deadline - .now), on: replies
        ) { result, wasSeen in
          switch Self.end(result, wasSeen, kind) {
          case .success(let value?): reply(value)
          case .success(nil): break
          case .failure(let error): errorHandler?(error)
          }
        }
      }
      if connection.role == .watch {
        wakeIfNeeded(connection, settings.messageTimeout, errorHandler, ask)
      } else {
        ask()
      }
    } catch {
      replies.async { errorHandler?(error) }
    }
  }

  /// - Returns: the reply, nil for a message that wants none.
  private static func end(
    _ result: Result<PropertyListValue, WormholeError>, _ wasSeen: Bool, _ kind: MessageKind
  ) -> Result<PropertyListValue?, WCError> {
    switch result {
    case .success(let value):
      switch Answer(value) {
      case .handled where kind.wantsReply:
        return .failure(WCError(.messageReplyFailed, "what it says is no reply"))
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

  /// Asks at once, or once the phone's app was started; in the order of the calls.
  private func wakeIfNeeded(
    _ connection: Connection, _ timeout: Duration,
    _ errorHandler: (@Sendable (any Error) -> Void)?, _ ask: @escaping @Sendable () -> Void
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
    // It takes as long as the other program takes to start.
    DispatchQueue.global().async { [self] in
      do throws(WormholeError) {
        try connection.peer.wake(within: timeout)
      } catch {
        // Those who wait are told that it cannot be reached, by asking.
        DropInLog.tell(.error, error)
      }
      while let ask = nextAwaited() { ask.perform() }
    }
  }

  /// The next of those who wait; nil, and nobody waits any more, if there is none.
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
