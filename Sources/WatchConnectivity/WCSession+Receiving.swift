internal import Dispatch
internal import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Receiving: content that arrives.
extension WCSession {
  /// The maximum number of messages that wait for the delegate.
  private static var mostMessages: Int { 10_000 }

  // MARK: Starting and stopping

  /// Starts or stops receiving, as the current state requires; on the `work` queue.
  ///
  /// - Parameter isAgain: whether outcomes of transfers may have been declined.
  func review(again isAgain: Bool = false) {
    if isAgain { state.withLock { $0.wantsEnds = true } }
    do throws(WormholeError) {
      try reviewNow()
    } catch {
      tryLater(error)
    }
  }

  private func reviewNow() throws(WormholeError) {
    guard activationState == .activated, let connection,
      let opened = state.withLock({ $0.opened })
    else { return }
    let isThere = delegate != nil
    if isThere, state.withLock({ $0.wantsEnds }) {
      try listenToEnds(connection)
      state.withLock { $0.wantsEnds = false }
    }
    let pairing = try look(at: opened)
    let reception = connection.reception
    let isReceiving = reception.map { !$0.isStopped } ?? false
    guard isThere, connection.isOpen(pairing) else { return connection.keep(Reception?.none) }
    if isReceiving { return }
    // After `stop()`, the messages that the old reception declined are requeued, and are
    // redelivered first.
    reception?.stop()
    let new = Reception()
    let kinds = takenKinds.map { taken in
      Set(TransferKind.allCases.filter { taken.contains($0.takenKind) }.map(\.rawValue))
    }
    // Stored before the first message arrives: the session must know which message its delegate
    // is handling.
    connection.keep(new)
    let messages: Subscription
    do throws(WormholeError) {
      messages = try connection.member.receive(kinds: kinds ?? TransferKind.all, on: callbacks) {
        [weak self, weak new] message in
        guard let self, let new else { return message.requeue() }
        try receive(message, new)
      }
    } catch {
      connection.keep(Reception?.none)
      throw error
    }
    new.keep(messages, nil)
    guard takenKinds?.contains(.context) ?? true else { return }
    do throws(WormholeError) {
      let contexts = try connection.member.watchContexts(on: callbacks) {
        [weak self, weak new] context in
        guard let self, let new else { return false }
        return receive(context, new)
      }
      new.keep(messages, contexts)
    } catch {
      new.stop()
      throw error
    }
  }

  /// Returns whether content whose sender knew a version of the pairing may go to the delegate.
  ///
  /// A sender reads the pairing at the moment of sending. If this side has not been notified of
  /// that version yet, this side reads the pairing too. So no content that was sent out of range
  /// arrives before the two sides are in range again.
  private func isOpen(_ connection: Connection, for id: String) -> Bool {
    let (version, state) = known.withLock { $0 }
    if TransferIdentifier.isKnown(id, at: version), connection.isOpen(state) { return true }
    return pairingState.map(connection.isOpen) ?? false
  }

  /// Whether the session receives a kind of content now; the subscription may be an earlier one.
  private func takes(_ kind: TakenKind?) -> Bool {
    guard let taken = takenKinds, let kind else { return true }
    return taken.contains(kind)
  }

  // MARK: Transfers

  private func receive(_ message: Message, _ reception: Reception) throws {
    guard !reception.isStopped, let connection, let delegate,
      takes(TransferKind(rawValue: message.kind)?.takenKind), isOpen(connection, for: message.id)
    else {
      // Stop before the redelivery, so that the message does not arrive in this reception again.
      reception.stopMessages()
      message.requeue()
      return reviewLater()
    }
    let value = try message.value(as: PropertyListValue.self)
    try reception.giving(message.id) {
      guard message.kind == TransferKind.file.rawValue, let file = message.file else {
        delegate.session(self, didReceiveUserInfo: value.foundationDictionary ?? [:])
        return
      }
      try file.withOriginalName { path in
        let url = URL(fileURLWithPath: path, isDirectory: false)
        delegate.session(
          self, didReceive: WCSessionFile(url, FilePayload.metadata(value)))
      }
    }
    tellUnhandled()
  }

  private func receive(_ context: Context, _ reception: Reception) -> Bool {
    guard !reception.isStopped, let connection, let delegate, takes(.context),
      let pairing = pairingState, connection.isOpen(pairing)
    else {
      reception.decline()
      reviewLater()
      return false
    }
    // After a failure, a redelivery of the same context would fail too.
    DropInLog.attempt {
      let value = try context.value(as: PropertyListValue.self)
      reception.givingContext {
        delegate.session(
          self, didReceiveApplicationContext: value.foundationDictionary ?? [:])
      }
      tellUnhandled()
    }
    return true
  }

  /// The reason for declining may be over already.
  private func reviewLater() { work.async { [weak self] in self?.review() } }

  private func tellUnhandled() {
    guard let method = unhandled.withLock({ $0.take() }) else { return }
    DropInLog.tell(
      .warning, "dropped a call of \(method): the delegate does not implement the method")
  }

  // MARK: Messages

  /// Runs on a thread that no other caller waits for.
  func take(_ request: Request) {
    guard delegate != nil else {
      return answer(
        request, .failure(.deliveryFailed, "the session of the counterpart has no delegate"))
    }
    let isRoom = messagesWaiting.withLock { count in
      guard count < Self.mostMessages else { return false }
      count += 1
      return true
    }
    guard isRoom else {
      return answer(
        request,
        .failure(.deliveryFailed, "too many messages wait for the delegate of the counterpart"))
    }
    callbacks.async { [self] in
      messagesWaiting.withLock { $0 -= 1 }
      // The sender's time limit has passed.
      guard request.timeLeft > .zero else { return }
      give(request)
    }
  }

  private func give(_ request: Request) {
    guard let kind = SessionMessageKind(rawValue: request.kind), let delegate else {
      return answer(
        request,
        .failure(
          .deliveryFailed, "the counterpart has no delegate, or the message has an unknown kind"))
    }
    let value: PropertyListValue
    do throws(WormholeError) {
      value = try request.value(as: PropertyListValue.self)
    } catch {
      return answer(request, .failure(.deliveryFailed, "\(error)"))
    }
    let once = Once(request)
    switch kind {
    case .dictionary:
      delegate.session(self, didReceiveMessage: value.foundationDictionary ?? [:])
    case .dictionaryWithReply:
      delegate.session(self, didReceiveMessage: value.foundationDictionary ?? [:]) { reply in
        self.reply(once) { () throws(WCError) in
          try SessionPayload.take(reply, largest: self.settings.largestMessage)
        }
      }
    case .data: delegate.session(self, didReceiveMessageData: value.dataValue ?? Data())
    case .dataWithReply:
      delegate.session(self, didReceiveMessageData: value.dataValue ?? Data()) { reply in
        self.reply(once) { () throws(WCError) in
          let limit = self.settings.largestMessage
          guard reply.count <= limit else { throw SessionPayload.tooLarge(reply.count, limit) }
          return .data(reply)
        }
      }
    }
    if let method = unhandled.withLock({ $0.take() }) {
      let reason = "the delegate of the counterpart does not implement \(method)"
      if let request = once.take() { answer(request, .failure(.deliveryFailed, reason)) }
    } else if !kind.wantsReply, let request = once.take() {
      answer(request, .handled)
    }
  }

  private func reply(_ once: Once, _ value: () throws(WCError) -> PropertyListValue) {
    guard let request = once.take() else { return }
    do throws(WCError) {
      answer(request, .reply(try value()))
    } catch {
      DropInLog.tell(.error, "cannot reply to a message: \(error.localizedDescription)")
      answer(request, .failure(.messageReplyFailed, error.localizedDescription))
    }
  }

  private func answer(_ request: Request, _ answer: Answer) {
    do throws(WormholeError) {
      try request.reply(answer.value)
    } catch {
      DropInLog.tell(.error, error)
      request.refuse("\(error)")
    }
  }
}

/// A request with a single reply: the first caller of `take()` sends the reply.
///
/// The delegate's reply handler holds the object. If the handler is released without a call, the
/// sender is told at once, and not by its time limit.
private final class Once: Sendable {
  private let request: Monitor<Request?>

  init(_ request: Request) { self.request = Monitor(request) }

  deinit {
    guard let request = take(), !Mutants.has(.keepReleased) else { return }
    let answer = Answer.failure(
      .messageReplyFailed, "the delegate of the counterpart has released its reply handler")
    DropInLog.attempt { try request.reply(answer.value) }
  }

  func take() -> Request? { request.withLock { $0.take() } }
}
