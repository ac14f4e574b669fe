public import Dispatch
internal import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A question whose end a closure is told of; nobody need keep it.
  public struct Inquiry: Sendable {
    fileprivate let asked: Asked?

    /// Takes the question back, if it has not ended; the closure is told
    /// ``WormholeError/Code-swift.struct/cancelled``.
    ///
    /// The peer may have read it already, and what it answers then is thrown away.
    public func cancel() { asked?.cancel() }
  }
}

/// Questions in the order of the calls.
extension Wormhole.Peer {
  /// Asks, and has a closure told of the end.
  ///
  /// When this returns the question has been put: what one thread asks, and sends with
  /// `send(_:_:kind:within:waking:)`, comes to the peer in the order of the calls, without
  /// waiting for one answer before the next question. The answers come as the peer gives them.
  ///
  /// The closure is called exactly once, and never before this has returned to a caller on the same
  /// serial queue: whatever is wrong is told to it too. Otherwise as
  /// `request(_:as:kind:within:waking:)`; wake the peer before, if it may not run.
  ///
  /// - Parameters:
  ///   - question: what is asked.
  ///   - type: what the answer is to be.
  ///   - kind: what the question is called; by default the name of its type.
  ///   - timeout: after which the end is ``WormholeError/Code-swift.struct/timedOut``.
  ///   - queue: where the closure is called; by default a serial one that all who name none share:
  ///     what takes long is in their way there.
  ///   - end: is told the answer, or why there is none.
  @discardableResult
  public func request<Question: Encodable, Answer: Decodable & Sendable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    within timeout: Duration = .seconds(10), on queue: DispatchQueue? = nil,
    _ end: @escaping @Sendable (Result<Answer, WormholeError>) -> Void
  ) -> Wormhole.Inquiry {
    let queue = queue ?? Self.ends
    do throws(WormholeError) {
      let deadline = hole.options.time.now + timeout
      let stranger = member == nil && guest == nil ? try hole.guest() : nil
      let asked = try Asked(
        self, try live ?? stranger!.live, question, kind ?? MessageKind.name(of: Question.self),
        timeout, until: deadline, "ask")
      asked.put { result in
        // Where answers are taken no closure may be in the way of the next.
        queue.async {
          stranger?.leave()
          end(Result { () throws(WormholeError) in try asked.result(result) })
        }
      }
      return Wormhole.Inquiry(asked: asked)
    } catch {
      queue.async { end(.failure(error)) }
      return Wormhole.Inquiry(asked: nil)
    }
  }

  private static var ends: DispatchQueue { Wormhole.inquiryEnds }

  /// Asks, and has a closure told the answer, once, or nil if there is none: on the thread that
  /// takes answers, which it must not hold up, and perhaps before this has returned.
  func request<Question: Encodable>(
    _ question: Question, kind: String, within timeout: Duration,
    ended: @escaping @Sendable (Bool?) -> Void
  ) {
    do throws(WormholeError) {
      guard let live = try live else { preconditionFailure("it is a guest, or a member, who asks") }
      let asked = try Asked(
        self, live, question, kind, timeout, until: hole.options.time.now + timeout, "ask")
      asked.put { end in ended(try? asked.result(end)) }
    } catch {
      ended(nil)
    }
  }
}

extension Wormhole {
  fileprivate static let inquiryEnds = DispatchQueue(label: "wormhole.answers")
}
