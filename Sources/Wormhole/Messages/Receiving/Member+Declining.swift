package import Dispatch
package import SharedContainer
internal import Syscalls

/// For who stands between a member and somebody who may not be there yet: what it is told and
/// declines counts as not heard.
extension Wormhole.Member {
  /// As ``watchOutcomes(on:_:)``.
  ///
  /// - Parameter handler: answers whether it was heard. What was not is told again to the next who
  ///   asks, in this life or another.
  package func watchOutcomes(
    on queue: DispatchQueue, accepting handler: @escaping @Sendable (Wormhole.Outcome) -> Bool
  ) throws(WormholeError) -> Wormhole.Subscription {
    let listener = outbox.listener(on: queue, handler)
    let subscription = live.subscribe(listener)
    do throws(WormholeError) {
      try outbox.add(listener)
    } catch {
      subscription.stop()
      throw error
    }
    return subscription
  }

  /// As ``watchContexts(on:_:)``.
  ///
  /// - Parameter handler: answers whether it was heard. What nobody has is told again when the next
  ///   one comes, or somebody asks.
  package func watchContexts(
    on queue: DispatchQueue?, accepting handler: @escaping @Sendable (Wormhole.Context) -> Bool
  ) throws(WormholeError) -> Wormhole.Subscription {
    let listener = contexts.listener(on: queue, handler)
    // Kept before it is told of anything.
    let subscription = live.subscribe(listener)
    do throws(WormholeError) {
      try contexts.add(listener)
    } catch {
      subscription.stop()
      throw error
    }
    return subscription
  }
}

extension Wormhole.Peer {
  /// As ``request(_:as:kind:within:on:_:)``, for a member; the end is told with whether the peer
  /// may have seen the question.
  package func inquire<Question: Encodable, Answer: Decodable & Sendable>(
    _ question: Question, as type: Answer.Type, kind: String, within timeout: Duration,
    on queue: DispatchQueue,
    _ end: @escaping @Sendable (Result<Answer, WormholeError>, _ wasSeen: Bool) -> Void
  ) {
    do throws(WormholeError) {
      guard let live = try live else {
        throw WormholeError(.notJoined, "ask", name, because: "no member asks")
      }
      let deadline = hole.options.time.now + timeout
      let asked = try Asked(self, live, question, kind, timeout, until: deadline, "ask")
      asked.put { result in
        // Where answers are taken no closure may be in the way of the next.
        queue.async {
          end(
            Result { () throws(WormholeError) in try asked.result(result) },
            asked.wasSeen)
        }
      }
    } catch {
      queue.async { end(.failure(error), false) }
    }
  }
}
