internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages of another machine that cannot be delivered here, and whose senders want no outcome.
///
/// The sender removes its file with the confirmation. From then on, only this machine has the
/// message. Usually the message becomes a dead letter of its receiver. If the receiver's directory
/// is closed, or has as many dead letters as it may have, the message stays here, in
/// `in/<machine>/<number>.<flow>.kept`, durable before the cursor passes it. Each later start of
/// the bridge tries to make a dead letter of it.
enum KeptMessages {
  static let mark = ".kept"
  /// How many messages of one machine are kept; more of them hold up the machine's flow.
  static let most = 1024

  static func add(
    _ message: KeptMessage, _ number: Int, of flow: String, _ folder: BridgeFolder
  ) throws(WormholeError) {
    let file = number.fileName(of: flow) + mark
    let files = try files(in: folder)
    // A bridge that was killed before the cursor passed the message keeps the message once more.
    guard files.count < most || files.contains(file) else {
      throw WormholeError(
        .full, "keep message", message.name.id,
        because: "\(most) messages of the machine wait for receivers that cannot have them",
        hint: "give this user access to the directories of these members; 'wormhole bridge doctor' "
          + "lists them")
    }
    try folder.write(
      file,
      [
        Key.receiver: .string(message.receiver), Key.name: .string(message.name.text),
        Key.reason: .string(message.reason), Key.body: .data(Data(message.body)),
        Key.queue: .boolean(message.isQueue),
      ])
  }

  static func contains(
    _ number: Int, of flow: String, _ name: MessageName, _ folder: BridgeFolder
  ) throws(WormholeError) -> Bool {
    if try folder.bytes(of: number.fileName(of: flow) + mark) != nil { return true }
    // As a refusal of an earlier version.
    let earlier = try folder.read(number.fileName + mark)
    return name.isSameMessage(as: earlier.flatMap { KeptMessage($0) }?.name)
  }

  /// The kept messages that can be read, by their files.
  static func all(in folder: BridgeFolder) throws(WormholeError) -> [(String, KeptMessage)] {
    var found: [(String, KeptMessage)] = []
    for file in try files(in: folder).sorted() {
      if let message = try folder.read(file).flatMap({ KeptMessage($0) }) {
        found.append((file, message))
      }
    }
    return found
  }

  private static func files(in folder: BridgeFolder) throws(WormholeError) -> [String] {
    try folder.names().filter { $0.ends(with: mark) }
  }
}

/// A message that could not become a dead letter yet.
struct KeptMessage: Equatable {
  let receiver: String
  let isQueue: Bool
  let name: MessageName
  let reason: String
  let body: [UInt8]

  init(_ entry: FlowEntry, _ body: [UInt8], _ reason: String) {
    (receiver, name, self.reason, self.body) = (entry.receiver, entry.name, reason, body)
    isQueue = entry.isQueue
  }

  fileprivate init?(_ list: PropertyListValue) {
    guard let receiver = list[Key.receiver]?.stringValue,
      let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) }),
      let body = list[Key.body]?.dataValue
    else { return nil }
    self.receiver = receiver
    isQueue = list[Key.queue]?.boolValue ?? false
    self.name = name
    reason = list[Key.reason]?.stringValue ?? ""
    self.body = Array(body)
  }
}

private enum Key {
  static let (receiver, name, reason, body) = ("to", "N", "reason", "body")
  static let queue = "queue"
}
