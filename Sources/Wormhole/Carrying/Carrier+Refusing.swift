internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages of other machines that cannot be delivered to a member of this machine.
extension Carrier {
  /// Throws if no message can be delivered to a member now: its directory may belong to another
  /// user, who has closed it.
  package func checkInbox(of receiver: Resident) throws(WormholeError) {
    let home = try container.receivers.home(of: peer(receiver), in: container.storage)
    _ = try naming("deliver message to", home, .inbox) { () throws(Errno) in try home.part(.inbox) }
  }

  /// Throws if a resident is not one of the machine; makes no proxy.
  ///
  /// The reasons are those of ``proxy(of:on:)``.
  package func check(_ resident: Resident, isOf machine: String) throws(WormholeError) {
    let home = try container.storage.existingMember(resident.name, in: resident.folder)
    guard let home else { return }
    let operation = "receive messages of"
    if let elsewhere = try naming(operation, resident.name, at: home, home.elsewhere) {
      guard elsewhere.machine != machine else { return }
      throw WormholeError(.conflict, operation, resident.name, because: elsewhere.reason)
    }
    guard try naming(operation, resident.name, at: home, home.isPresent()) else { return }
    throw WormholeError(
      .nameTaken, operation, resident.name, because: "a process of this machine has the name")
  }

  /// Stores a message among the dead letters of its receiver, durably.
  ///
  /// The sender wants no outcome and has removed the message. The letter can be retried and
  /// discarded, as that of a damaged message in an inbox. Repeating the call changes nothing.
  ///
  /// - Parameter name: the message's name at its sender.
  package func bury(
    _ bytes: [UInt8], as name: MessageName, to receiver: Resident, _ reason: String
  ) throws(WormholeError) {
    let home = try container.receivers.home(of: peer(receiver), in: container.storage)
    let settlement = Settlement(
      container: container, home: home, claims: home, senders: senders,
      supersession: "another process has settled the message")
    try settlement.explain(name, attempts: 0, reason)
    try naming("dead-letter message to", home, .dead) { () throws(Errno) in
      try home.place(bytes, as: name.text, in: .dead, durability: .power, replacing: true)
      try home.makeDurable(.dead)
    }
  }
}
