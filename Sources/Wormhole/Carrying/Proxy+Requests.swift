package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Requests and immediate messages between machines, in both directions.
///
/// While a member of another machine runs, its proxy has the folder of its incarnation, as the
/// member itself. Requests to the member arrive there. The carrier takes them, and the member's
/// machine asks in turn. When the member asks a member of this machine, its proxy asks: the reply
/// arrives in the same folder. So the programs on both sides see a member as on one machine.
extension Proxy {
  /// Returns the exchange of the member's process; nil if the carrier takes no requests.
  func exchange(
    in folder: OpenDirectory, as incarnation: Incarnation
  ) throws(WormholeError) -> LiveMailbox? {
    guard let handler = carrier.requests.withLock({ $0 }) else { return nil }
    let container = carrier.container
    let live = LiveMailbox(container, home, folder, incarnation, mark: home.escaped) {
      live, name, core in
      do throws(WormholeError) {
        handler.take(try CarriedRequest(live, name, core))
      } catch {
        container.log(.error, error, about: core.subject)
      }
    }
    try live.begin()
    return live
  }

  /// Asks a member of this machine in the name of the proxy's process.
  ///
  /// - Parameters:
  ///   - time: the time for which the asker still waits.
  ///   - end: called once, on any thread, with the reply; with nil for a message, and when the time
  ///     is over.
  /// - Returns: false if the asking process is not shown here; then nothing was done.
  package func ask(
    _ question: CarriedQuestion, within time: Duration,
    _ end: @escaping @Sendable (CarriedReply?) -> Void
  ) -> Bool {
    guard let live = shownExchange, live.incarnation == question.senderIncarnation else {
      return false
    }
    live.pass(question, within: time, end)
    return true
  }
}

extension Carrier {
  /// Takes requests and immediate messages to members of other machines.
  ///
  /// Call this before any proxy appears.
  ///
  /// - Parameter handler: called on any thread, for one proxy in the order of arrival.
  package func takeRequests(_ handler: @escaping @Sendable (CarriedRequest) -> Void) {
    requests.withLock { $0 = RequestHandler(take: handler) }
  }
}

/// The closure that receives requests to members of other machines.
struct RequestHandler: Sendable {
  let take: @Sendable (CarriedRequest) -> Void
}

/// A guest of this machine that asks in place of guests of other machines.
package final class RequestDesk: Sendable {
  private let guest: Guest

  package init(_ carrier: Carrier) throws(WormholeError) { guest = try carrier.container.guest() }

  /// Asks a member of this machine; see ``Proxy/ask(_:within:_:)``.
  package func ask(
    _ question: CarriedQuestion, within time: Duration,
    _ end: @escaping @Sendable (CarriedReply?) -> Void
  ) {
    guest.live.pass(question, within: time, end)
  }

  package func stop() { guest.leave() }
}

extension LiveMailbox {
  /// Asks the addressed process.
  fileprivate func pass(
    _ question: CarriedQuestion, within time: Duration,
    _ end: @escaping @Sendable (CarriedReply?) -> Void
  ) {
    let operation =
      question.letter == .question ? OutgoingRequest.operation : "send message to"
    do throws(WormholeError) {
      let label = try OutgoingLabel(
        question.kind, question.headers, of: PropertyListValue.self, operation, question.receiver)
      var asked = try OutgoingRequest(
        container.peer(question.receiver), self, question.value, label, time,
        until: container.options.time.now + time, operation)
      asked.only = question.incarnation
      switch question.letter {
      case .message:
        _ = try asked.send(.message) { _ in }
        end(nil)
      case .question: asked.put(.question) { end(CarriedReply($0)) }
      case .confirmed: asked.put(.confirmed) { end(CarriedReply($0)) }
      }
    } catch {
      end(CarriedReply(.failure(error)))
    }
  }
}
