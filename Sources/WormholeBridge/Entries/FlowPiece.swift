package import Wormhole
internal import WormholePropertyLists

/// A part of a large message, or of a file, that travels before the message that names it.
package struct FlowPiece: Hashable, Sendable {
  package let part: MessagePart
  /// Counted from 0, in each part.
  package let index: Int
  /// The size of the whole part in bytes.
  package let size: Int

  /// The bytes of each piece but the last one: the least `max_payload` of servers permits one in a
  /// bundle.
  package static let bytes = 256 << 10

  package var offset: Int { index * Self.bytes }
  /// The bytes of this piece.
  package var count: Int { min(Self.bytes, size - offset) }

  package init(_ part: MessagePart, _ index: Int, of size: Int) {
    (self.part, self.index, self.size) = (part, index, size)
  }

  private enum Key { static let (part, index, size) = ("part", "index", "size") }

  var propertyList: [String: PropertyListValue] {
    [
      Key.part: .string(part.rawValue), Key.index: .integer(Int64(index)),
      Key.size: .integer(Int64(size)),
    ]
  }

  /// Nil for a piece that is no part of anything.
  init?(_ list: PropertyListValue) {
    guard let part = list[Key.part]?.stringValue.flatMap({ MessagePart(rawValue: $0) }),
      let size = list[Key.size]?.intValue, size > 0, let index = list[Key.index]?.intValue,
      (0...(size - 1) / Self.bytes).contains(index)
    else { return nil }
    self.init(part, index, of: size)
  }
}

/// How far a large message is bound to numbers, in `flow.plist` and in memory.
///
/// The message itself stays in the inbox, where its sender may cancel it, until all of its pieces
/// have numbers.
struct FlowTransfer: Hashable {
  let receiver: Carrier.Resident
  let name: MessageName
  /// The next piece.
  var part: MessagePart
  var index: Int

  private enum Key {
    static let (receiver, name, part, index) = ("to", "N", "part", "index")
    static let queue = "queue"
  }

  init(to receiver: Carrier.Resident, _ name: MessageName) {
    (self.receiver, self.name, part, index) = (receiver, name, .file, 0)
  }

  init(to receiver: Carrier.Resident, _ name: MessageName, after piece: FlowPiece) {
    (self.receiver, self.name) = (receiver, name)
    (part, index) = (piece.part, piece.index + 1)
  }

  var propertyList: PropertyListValue {
    var list: [String: PropertyListValue] = [
      Key.receiver: .string(receiver.name), Key.name: .string(name.text),
      Key.part: .string(part.rawValue), Key.index: .integer(Int64(index)),
    ]
    if case .queue = receiver { list[Key.queue] = true }
    return .dictionary(list)
  }

  init?(_ list: PropertyListValue) {
    guard let receiver = list[Key.receiver]?.stringValue,
      let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) }),
      let part = list[Key.part]?.stringValue.flatMap({ MessagePart(rawValue: $0) }),
      let index = list[Key.index]?.intValue, (0...Int.max / FlowPiece.bytes).contains(index)
    else { return nil }
    let isQueue = list[Key.queue]?.boolValue ?? false
    self.receiver = isQueue ? .queue(receiver) : .member(receiver)
    (self.name, self.part, self.index) = (name, part, index)
  }

  /// The next piece of a message with these sizes; nil if all pieces have numbers.
  func next(_ sizes: Proxy.Sizes) -> FlowPiece? {
    if part == .file {
      if let size = sizes.file, index * FlowPiece.bytes < size {
        return FlowPiece(.file, index, of: size)
      }
      return sizes.message > FlowPiece.bytes ? FlowPiece(.message, 0, of: sizes.message) : nil
    }
    guard sizes.message > FlowPiece.bytes, index * FlowPiece.bytes < sizes.message else {
      return nil
    }
    return FlowPiece(.message, index, of: sizes.message)
  }
}
