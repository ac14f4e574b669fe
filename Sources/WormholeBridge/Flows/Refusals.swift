internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Messages of another machine that cannot be delivered here, until their outcome is on its way.
///
/// A refusal is a file beside the records of the flow to that machine, named after the number that
/// the message has in the other direction, and after that flow. It is durable before the cursor
/// passes the message. A message without a wanted outcome has no refusal: see ``KeptMessages``.
package final class Refusals {
  static let mark = ".refused"
  private let folder: BridgeFolder
  /// The outcomes that have no number yet.
  var waiting: [FlowEntry] = []

  private enum Key {
    static let (receiver, name, reason, isReturn) = ("to", "N", "reason", "return")
    static let (early, queue) = ("early", "queue")
  }

  init(_ folder: BridgeFolder) throws(WormholeError) {
    self.folder = folder
    for file in try folder.names().sorted() where file.ends(with: Self.mark) {
      guard let list = try folder.read(file), let receiver = list[Key.receiver]?.stringValue,
        let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) })
      else { continue }
      let reason = list[Key.isReturn]?.boolValue == true ? nil : list[Key.reason]?.stringValue ?? ""
      let isEarly = list[Key.early]?.boolValue ?? false
      let isQueue = list[Key.queue]?.boolValue ?? false
      let message = FlowEntry(.message, to: receiver, name, isQueue: isQueue)
      waiting.append(entry(file, message, reason, isEarly))
    }
  }

  /// Adds a refusal, or the same one again.
  ///
  /// A call of ``makeDurable()`` has to follow.
  ///
  /// - Parameters:
  ///   - flow: the flow of the number.
  ///   - reason: nil if the sender's machine sends the message again, to another machine.
  ///   - isEarly: whether the number is that of the first piece, and not that of the message.
  func add(
    _ number: Int, of flow: String, _ message: FlowEntry, _ reason: String?, isEarly: Bool = false
  ) throws(WormholeError) {
    try add(number.fileName(of: flow), message, reason, isEarly)
  }

  /// Adds the return of a message that was delivered here under a name.
  func add(returnOf name: MessageName, _ message: FlowEntry) throws(WormholeError) {
    // No number of a flow is as large as a hash, in practice.
    try add(FowlerHash.hash(name.text.utf8).digits, message, nil, false)
  }

  private func add(
    _ file: String, _ message: FlowEntry, _ reason: String?, _ isEarly: Bool
  ) throws(WormholeError) {
    let file = file + Self.mark
    try folder.write(
      file,
      [
        Key.receiver: .string(message.receiver), Key.name: .string(message.name.text),
        Key.reason: .string(reason ?? ""), Key.isReturn: .boolean(reason == nil),
        Key.early: .boolean(isEarly), Key.queue: .boolean(message.isQueue),
      ])
    waiting.removeAll { $0.source == .refusal(file) }
    waiting.append(entry(file, message, reason, isEarly))
  }

  /// Whether the message with the number and the name is refused, and its outcome not confirmed.
  func contains(
    _ number: Int, of flow: String, _ name: MessageName
  ) throws(WormholeError) -> Bool {
    if try folder.read(number.fileName(of: flow) + Self.mark) != nil { return true }
    // A file of an earlier version has no flow in its name, and may be one of another flow.
    let earlier = try folder.read(number.fileName + Self.mark)?[Key.name]?.stringValue
    return name.isSameMessage(as: earlier.flatMap { MessageName($0) })
  }

  private func entry(
    _ file: String, _ message: FlowEntry, _ reason: String?, _ isEarly: Bool
  ) -> FlowEntry {
    let kind = reason.map { FlowEntry.Kind.outcome(.deadLettered(reason: $0)) } ?? .returned
    return FlowEntry(
      kind, to: message.receiver, message.name, source: .refusal(file), isEarly: isEarly,
      isQueue: message.isQueue)
  }

  /// Removes the file of a confirmed outcome or return.
  ///
  /// If an earlier process has made the record of its number, the outcome waits here, too. Under a
  /// second number, a return would take the message away from the new home.
  func remove(_ file: String) throws(WormholeError) {
    try folder.remove(file)
    waiting.removeAll { $0.source == .refusal(file) }
  }

  func makeDurable() throws(WormholeError) { try folder.makeDurable() }
}

extension MessageName {
  /// Whether the names are those of one message, at its sender and where it was delivered.
  func isSameMessage(as other: MessageName?) -> Bool { id == other?.id && sender == other?.sender }
}
