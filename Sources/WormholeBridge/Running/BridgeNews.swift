internal import Wormhole
package import WormholeSyscalls

/// News of other threads for the thread of a bridge.
package final class BridgeNews: Sendable {
  struct NewsContent {
    var residents: Set<Carrier.Resident> = []
    var members: Set<String> = []
    /// The proxies of members that programs of this machine may want to wake.
    var woken: Set<Carrier.Resident> = []
    /// Requests of programs of this machine, and replies to requests of other machines.
    var requests: [CarriedRequest] = []
    var replies: [(subject: String, payload: [UInt8], instead: [UInt8]?)] = []
    /// Changes of copies, and changed channels of this machine.
    var changes: [(change: Carrier.ChannelChange, answer: ChangeQueue.Answer)] = []
    var channels: Set<String> = []
    /// The machines to which messages of queues are lent.
    var borrowers: Set<String> = []
    var isOver = false
  }

  private let content = Monitor(NewsContent())
  let wake: WakeDescriptor

  package init() throws(Errno) { wake = try WakeDescriptor() }

  /// Ends the bridge after the step in progress.
  package func stop() { change { $0.isOver = true } }

  func note(_ residents: Set<Carrier.Resident>) { change { $0.residents.formUnion(residents) } }
  func note(woken: Set<Carrier.Resident>) { change { $0.woken.formUnion(woken) } }
  func note(request: CarriedRequest) { change { $0.requests.append(request) } }
  /// - Parameter instead: the reply if the servers do not carry so many bytes; nil for the refusal
  ///   of a request.
  func note(reply: [UInt8], to subject: String, orInstead instead: [UInt8]? = nil) {
    change { $0.replies.append((subject, reply, instead)) }
  }
  func note(change: Carrier.ChannelChange, _ answer: @escaping ChangeQueue.Answer) {
    self.change { $0.changes.append((change, answer)) }
  }
  func note(channel: String) { change { $0.channels.insert(channel) } }
  func note(lentTo machine: String) { change { $0.borrowers.insert(machine) } }
  func note(member: String) { change { $0.members.insert(member) } }

  private func change(_ body: (inout NewsContent) -> Void) {
    content.withLock { body(&$0) }
    wake.raise()
  }

  /// The news since the last call.
  func take() -> NewsContent {
    wake.lower()
    return content.withLock { content in
      defer { content = NewsContent(isOver: content.isOver) }
      return content
    }
  }
}
