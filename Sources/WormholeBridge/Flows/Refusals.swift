internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages of another machine that cannot be delivered here, until their outcome is on its way.
///
/// A refusal is a file beside the records of the flow to that machine, named after the number that
/// the message has in the other direction. It is durable before the cursor passes the message.
package struct Refusals {
  static let mark = ".refused"
  private let folder: BridgeFolder

  private enum Key { static let (receiver, name, reason) = ("to", "N", "reason") }

  init(_ folder: BridgeFolder) { self.folder = folder }

  func add(_ number: Int, _ entry: FlowEntry, _ reason: String) throws(WormholeError) {
    try folder.write(
      number.fileName + Self.mark,
      [
        Key.receiver: .string(entry.receiver), Key.name: .string(entry.name.text),
        Key.reason: .string(reason),
      ])
  }

  /// The outcomes of the refused messages, in the order of their numbers.
  func entries() throws(WormholeError) -> [FlowEntry] {
    var found: [FlowEntry] = []
    for file in try folder.names().sorted() where file.ends(with: Self.mark) {
      guard let list = try folder.read(file), let receiver = list[Key.receiver]?.stringValue,
        let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) })
      else { continue }
      found.append(
        FlowEntry(
          .outcome(.deadLettered(reason: list[Key.reason]?.stringValue ?? "")), to: receiver,
          name, source: .refusal(file)))
    }
    return found
  }

  func makeDurable() throws(WormholeError) { try folder.makeDurable() }
}
