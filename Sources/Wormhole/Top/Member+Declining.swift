package import Dispatch
package import WormholeContainerStorage
internal import WormholeSyscalls

/// For adapters between a member and a program that may not be ready yet: declined outcomes and
/// contexts stay pending.
extension Member {
  /// As ``watchOutcomes(on:_:)``.
  ///
  /// - Parameter handler: returns whether the outcome was accepted. A declined outcome is reported
  ///   again to the next listener, in this incarnation or a later one.
  package func watchOutcomes(
    on queue: any CallQueue, accepting handler: @escaping @Sendable (Outcome) -> Bool
  ) throws(WormholeError) -> Subscription {
    try subscribe(outbox.listener(on: queue, handler), outbox.add)
  }

  /// As ``watchContexts(on:_:)``.
  ///
  /// - Parameter handler: returns whether the context was accepted. A context declined by all
  ///   listeners is reported again when the next context arrives, or when a listener is added.
  package func watchContexts(
    on queue: DispatchQueue?, accepting handler: @escaping @Sendable (Context) -> Bool
  ) throws(WormholeError) -> Subscription {
    try subscribe(contexts.listener(on: queue, handler), contexts.add)
  }

  private func subscribe<Item: Sendable>(
    _ listener: MemberListener<Item>, _ add: (MemberListener<Item>) throws(WormholeError) -> Void
  ) throws(WormholeError) -> Subscription {
    // Subscribed before the first call of the handler.
    let subscription = live.subscribe(listener)
    do throws(WormholeError) {
      try add(listener)
    } catch {
      subscription.stop()
      throw error
    }
    return subscription
  }
}

extension Peer {
  /// As ``request(_:as:kind:headers:within:on:_:)``, for a member.
  ///
  /// The closure also receives whether the peer may have seen the request.
  package func inquire<Question: Encodable, Answer: Decodable & Sendable>(
    _ question: Question, as type: Answer.Type, kind: String, within timeout: Duration,
    on queue: DispatchQueue,
    _ end: @escaping @Sendable (Result<Answer, WormholeError>, _ wasSeen: Bool) -> Void
  ) {
    do throws(WormholeError) {
      guard let live = live else {
        throw WormholeError(
          .notJoined, OutgoingRequest.operation, name, because: "the requester has not joined",
          hint: "join, and send the request through the member")
      }
      let deadline = container.options.time.now + timeout
      let label = try OutgoingLabel(
        kind, [:], of: Question.self, OutgoingRequest.operation, name)
      let asked = try OutgoingRequest(self, live, question, label, timeout, until: deadline)
      asked.put { result in
        // On the thread that takes replies, a closure would delay the next reply.
        queue.soon {
          end(
            Result { () throws(WormholeError) in try asked.result(result) },
            asked.wasSeen)
        }
      }
    } catch {
      queue.soon { end(.failure(error), false) }
    }
  }
}
