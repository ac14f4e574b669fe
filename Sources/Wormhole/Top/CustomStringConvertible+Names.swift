internal import Synchronization
internal import WormholeContainerStorage

// What `print`, logs and a debugger show of the public types: names, IDs and versions.
//
// The default description would reflect the stored properties, with locks, directories and the
// bytes of files.

extension SharedContainer: CustomStringConvertible {
  /// The type and the directory: `SharedContainer 'cinema.container'`.
  public var description: String { "SharedContainer '\(directory)'" }
}

extension Channel: CustomStringConvertible {
  /// The type and the name: `Channel<Int> 'seats'`.
  public var description: String { "Channel<\(Value.self)> '\(name)'" }
}

extension ConfigurationChannel: CustomStringConvertible {
  /// The type and the name: `ConfigurationChannel<Config> 'config'`.
  public var description: String { "ConfigurationChannel<\(Value.self)> '\(name)'" }
}

extension Snapshot: CustomStringConvertible {
  /// The channel, its version and the value: `'seats', version 3: 118`.
  public var description: String {
    let content =
      switch value {
      case let value?: "\(value)"
      case nil: "cleared"
      }
    return "'\(channel)', version \(version): \(content)"
  }
}

extension Notice: CustomStringConvertible {
  /// The type and the name: `Notice 'ready'`.
  public var description: String { "Notice '\(name)'" }
}

extension Defaults: CustomStringConvertible {
  /// The type and the name of the suite: `Defaults 'settings'`.
  public var description: String { "Defaults '\(suite)'" }
}

extension Lock: CustomStringConvertible {
  /// The type and the name: `Lock 'till'`.
  public var description: String { "Lock '\(name)'" }
}

extension Member: CustomStringConvertible {
  /// The type and the name, and whether the member has left: `Member 'office'`.
  public var description: String {
    "Member '\(name)'" + (isLeaving.load(ordering: .acquiring) ? ", left" : "")
  }
}

extension Guest: CustomStringConvertible {
  /// The type and the number of the guest: `Guest 3f9a0c11d2e84b67`.
  public var description: String { "Guest \(incarnation)" }
}

extension Peer: CustomStringConvertible {
  /// The type and the name: `Peer 'office'`.
  public var description: String { "Peer '\(name)'" }
}

extension Message: CustomStringConvertible {
  /// The ID, kind, sender and attempt: `Message '3f9a' of kind 'Order' from 'till', attempt 1`.
  ///
  /// The index follows the ID of a further message of a batch.
  public var description: String {
    let place = batchIndex > 0 ? "[\(batchIndex)]" : ""
    return "Message '\(id)'\(place) of kind '\(kind)' from \(sender(from)), attempt \(attempt)"
  }
}

extension ImmediateMessage: CustomStringConvertible {
  /// The kind and the sender: `ImmediateMessage of kind 'Glance' from 'till'`.
  public var description: String { "ImmediateMessage of kind '\(kind)' from \(sender(from))" }
}

extension Request: CustomStringConvertible {
  /// The kind and the requester: `Request of kind 'SeatsLeft' from 'till'`.
  public var description: String { "Request of kind '\(kind)' from \(sender(from))" }
}

extension Context: CustomStringConvertible {
  /// The kind and the sender: `Context of kind 'Prices' from 'office'`.
  public var description: String { "Context of kind '\(kind)' from '\(from)'" }
}

extension Sent: CustomStringConvertible {
  /// The ID and the receiver, and the status of a settled message: `Sent '3f9a' to 'office'`.
  public var description: String {
    "Sent '\(id)' to '\(to)'" + (status.map { ", \($0)" } ?? "")
  }
}

extension Outcome: CustomStringConvertible {
  /// The ID, kind and receiver, and the status: `Outcome of 'Order' '3f9a' to 'office': expired`.
  public var description: String { "Outcome of '\(kind)' '\(id)' to '\(to)': \(status)" }
}

extension ReceivedFile: CustomStringConvertible {
  /// The sender's name of the file, and its size: `ReceivedFile 'seats.pdf', 5120 bytes`.
  public var description: String { "ReceivedFile '\(name)', \(size) bytes" }
}

extension Subscription: CustomStringConvertible {
  /// The type, and whether the subscription has ended.
  public var description: String { "Subscription, " + (hasEnded ? "ended" : "active") }
}

private func sender(_ name: String?) -> String { name.map { "'\($0)'" } ?? "an unnamed sender" }
