package import Wormhole
package import WormholePropertyLists

/// Which message of which machine a delivered message is, in its key `origin`.
package struct MessageOrigin: Hashable, Sendable {
  package let machine: String
  package let receiver: String
  /// The name at the sender.
  package let name: MessageName
  package let isQueue: Bool
  /// The claim, if the message is lent to workers of this machine.
  package let job: FlowJob?

  /// The key of delivered messages.
  static let key = "origin"

  private enum Key {
    static let (machine, receiver, name, queue) = ("machine", "to", "name", "queue")
  }

  package init(
    machine: String, receiver: String, name: MessageName, isQueue: Bool = false,
    job: FlowJob? = nil
  ) {
    (self.machine, self.receiver, self.name) = (machine, receiver, name)
    (self.isQueue, self.job) = (isQueue, job)
  }

  package init?(_ list: PropertyListValue?) {
    guard let machine = list?[Key.machine]?.stringValue,
      let receiver = list?[Key.receiver]?.stringValue,
      let name = list?[Key.name]?.stringValue.flatMap({ MessageName($0) })
    else { return nil }
    self.init(
      machine: machine, receiver: receiver, name: name,
      isQueue: list?[Key.queue]?.boolValue ?? false, job: FlowJob(list))
  }

  /// The receiver, as the bridge knows it.
  var resident: Carrier.Resident { isQueue ? .queue(receiver) : .member(receiver) }

  package var propertyList: PropertyListValue {
    var list: [String: PropertyListValue] = [
      Key.machine: .string(machine), Key.receiver: .string(receiver),
      Key.name: .string(name.text),
    ]
    if isQueue { list[Key.queue] = true }
    if let job { list.merge(job.propertyList) { own, _ in own } }
    return .dictionary(list)
  }
}
