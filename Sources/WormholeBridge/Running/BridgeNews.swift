internal import Wormhole
package import WormholeSyscalls

/// News of other threads for the thread of a bridge.
package final class BridgeNews: Sendable {
  struct Content {
    var residents: Set<Carrier.Resident> = []
    var members: Set<String> = []
    /// Requests of programs of this machine, and replies to requests of other machines.
    var requests: [CarriedRequest] = []
    var replies: [(subject: String, payload: [UInt8])] = []
    var isOver = false
  }

  private let content = Monitor(Content())
  let wake: WakeDescriptor

  package init() throws(Errno) { wake = try WakeDescriptor() }

  /// Ends the bridge after the step in progress.
  package func stop() { change { $0.isOver = true } }

  func note(_ residents: Set<Carrier.Resident>) { change { $0.residents.formUnion(residents) } }
  func note(request: CarriedRequest) { change { $0.requests.append(request) } }
  func note(reply: [UInt8], to subject: String) {
    change { $0.replies.append((subject, reply)) }
  }
  func note(member: String) { change { $0.members.insert(member) } }

  private func change(_ body: (inout Content) -> Void) {
    content.withLock { body(&$0) }
    wake.raise()
  }

  /// The news since the last call.
  func take() -> Content {
    wake.lower()
    return content.withLock { content in
      defer { content = Content(isOver: content.isOver) }
      return content
    }
  }
}
