package import Wormhole
package import WormholePropertyLists

/// Which message of which machine a delivered message is, in its key `origin`.
package struct MessageOrigin: Hashable, Sendable {
  package let machine: String
  package let receiver: String
  /// The name at the sender.
  package let name: MessageName

  /// The key of delivered messages.
  static let key = "origin"

  private enum Key { static let (machine, receiver, name) = ("machine", "to", "name") }

  package init(machine: String, receiver: String, name: MessageName) {
    (self.machine, self.receiver, self.name) = (machine, receiver, name)
  }

  package init?(_ list: PropertyListValue?) {
    guard let machine = list?[Key.machine]?.stringValue,
      let receiver = list?[Key.receiver]?.stringValue,
      let name = list?[Key.name]?.stringValue.flatMap({ MessageName($0) })
    else { return nil }
    self.init(machine: machine, receiver: receiver, name: name)
  }

  package var propertyList: PropertyListValue {
    [
      Key.machine: .string(machine), Key.receiver: .string(receiver),
      Key.name: .string(name.text),
    ]
  }
}
