public import Dispatch
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A handle for a request whose result a closure receives; it need not be retained.
public struct PendingRequest: Sendable {
  fileprivate let asked: OutgoingRequest?

  /// Cancels the request, if it has not ended; the closure receives
  /// ``WormholeError/Code-swift.struct/cancelled``.
  ///
  /// The peer may have read the request already. Its reply is then discarded.
  public func cancel() { asked?.cancel() }
}

/// Requests in the order of the calls.
extension Peer {
  /// Sends a request, and calls a closure with the result.
  ///
  /// When this function returns, the request has been placed. So the requests of one thread, and
  /// its messages by `sendImmediately(_:kind:headers:within:waking:)`, reach the peer in the order
  /// of the calls; no call waits for the reply to the previous request. The replies arrive in the
  /// order of the peer.
  ///
  /// The closure is called exactly once. On the caller's own serial queue, the call never precedes
  /// the return of this function. Every error is passed to the closure. Otherwise this works as
  /// `request(_:as:kind:headers:within:waking:)`; wake the peer first if it may not run.
  ///
  /// - Parameters:
  ///   - question: the content of the request.
  ///   - type: the type of the reply.
  ///   - kind: the kind of the request; by default the name of the value's type.
  ///   - headers: the headers of the request; see ``SendOptions/headers``.
  ///   - timeout: the time after which the result is ``WormholeError/Code-swift.struct/timedOut``.
  ///   - queue: the queue for the closure. By default, all calls without a queue share a serial
  ///     queue, in which a slow closure delays the next closures.
  ///   - end: receives the reply, or the error if there is none.
  @discardableResult
  public func request<Question: Encodable, Answer: Decodable & Sendable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    headers: [String: String] = [:], within timeout: Duration = .seconds(10),
    on queue: DispatchQueue? = nil,
    _ end: @escaping @Sendable (Result<Answer, WormholeError>) -> Void
  ) -> PendingRequest {
    let queue: any CallQueue = queue ?? Self.ends
    do throws(WormholeError) {
      let deadline = container.options.time.now + timeout
      let stranger = member == nil && guest == nil ? try container.guest() : nil
      let asked = try OutgoingRequest(
        self, live ?? stranger!.live, question,
        OutgoingLabel(kind, headers, of: Question.self, OutgoingRequest.operation, name),
        timeout, until: deadline)
      asked.put { result in
        // On the thread that takes replies, a closure would delay the next reply.
        queue.soon {
          stranger?.leave()
          end(Result { () throws(WormholeError) in try asked.result(result) })
        }
      }
      return PendingRequest(asked: asked)
    } catch {
      queue.soon { end(.failure(error)) }
      return PendingRequest(asked: nil)
    }
  }

  private static var ends: WorkQueue { SharedContainer.inquiryEnds }

  /// Sends a request, and calls a closure once with the reply, or with nil if there is none.
  ///
  /// The closure runs on the thread that takes replies, must not delay the thread, and may run
  /// before the function has returned.
  func request<Question: Encodable>(
    _ question: Question, kind: String, within timeout: Duration,
    ended: @escaping @Sendable (Bool?) -> Void
  ) {
    do throws(WormholeError) {
      guard let live = live else { preconditionFailure("a requester must be a guest or a member") }
      let asked = try OutgoingRequest(
        self, live, question,
        OutgoingLabel(kind, [:], of: Question.self, OutgoingRequest.operation, name), timeout,
        until: container.options.time.now + timeout)
      asked.put { end in ended(try? asked.result(end)) }
    } catch {
      ended(nil)
    }
  }
}

extension SharedContainer {
  fileprivate static let inquiryEnds = WorkQueue()
}
