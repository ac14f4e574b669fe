internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages of another machine that cannot be delivered here, until their outcome is on its way.
///
/// A refusal is a file beside the records of the flow to that machine, named after the number that
/// the message has in the other direction. It is durable before the cursor passes the message. A
/// message without a wanted outcome has no refusal: see ``KeptMessages``.
package final class Refusals {
  static let mark = ".refused"
  private let folder: BridgeFolder
  /// The outcomes that have no number yet.
  var waiting: [FlowEntry] = []

  private enum Key { static let (receiver, name, reason) = ("to", "N", "reason") }

  init(_ folder: BridgeFolder) throws(WormholeError) {
    self.folder = folder
    for file in try folder.names().sorted() where file.ends(with: Self.mark) {
      guard let list = try folder.read(file), let receiver = list[Key.receiver]?.stringValue,
        let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) })
      else { continue }
      waiting.append(entry(file, receiver, name, list[Key.reason]?.stringValue ?? ""))
    }
  }

  /// Adds a refusal, or the same one again.
  ///
  /// A call of ``makeDurable()`` has to follow.
  func add(_ number: Int, _ message: FlowEntry, _ reason: String) throws(WormholeError) {
    let file = number.fileName + Self.mark
    try folder.write(
      file,
      [
        Key.receiver: .string(message.receiver), Key.name: .string(message.name.text),
        Key.reason: .string(reason),
      ])
    waiting.removeAll { $0.source == .refusal(file) }
    waiting.append(entry(file, message.receiver, message.name, reason))
  }

  /// Whether the message with the number is refused, and its outcome not confirmed.
  func contains(_ number: Int) throws(WormholeError) -> Bool {
    try folder.read(number.fileName + Self.mark) != nil
  }

  private func entry(
    _ file: String, _ receiver: String, _ name: MessageName, _ reason: String
  ) -> FlowEntry {
    FlowEntry(.outcome(.deadLettered(reason: reason)), to: receiver, name, source: .refusal(file))
  }

  func makeDurable() throws(WormholeError) { try folder.makeDurable() }
}
