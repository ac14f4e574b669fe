package import FoundationEssentials
internal import WormholeContainerStorage
package import WormholePropertyLists

/// A file of messages on its way to another machine: a single message, or a batch.
package struct CarriedMessage: Sendable {
  package let name: MessageName
  /// The file, as its sender has written it.
  package let bytes: [UInt8]
  private let header: MessageFile.Header
  private let limits: PropertyListLimits

  /// - Parameter name: the file's name at its sender.
  init(
    _ name: MessageName, _ bytes: [UInt8], _ limits: PropertyListLimits
  ) throws(WormholeError) {
    let decoder = BinaryDecoder(limits: limits)
    header = try WormholeError.reading("read message", name.id, of: .message) {
      try MessageFile.Document(bytes, decoder).header
    }
    (self.name, self.bytes, self.limits) = (name, bytes, limits)
  }

  /// The receiver that the sender has named.
  package var receiver: String { header.to }
  /// Until when the message may be received, by the clock of the sender's machine.
  package var expires: Date? { header.expires }
  /// The size of the file that was sent with the message; nil if none was sent.
  package var fileSize: Int? { header.file?.size }
  /// What a carrier has written into a message that it has delivered here.
  package var origin: PropertyListValue? { header.origin }

  /// Returns the file for the receiver's inbox.
  ///
  /// - Parameters:
  ///   - origin: identifies the message for the carriers, until its outcome has come back.
  ///   - expires: the same moment as ``expires``, by the clock of the receiver's machine.
  ///   - isRepeated: whether the message may have been delivered before.
  package func delivered(
    from origin: PropertyListValue, expires: Date?, isRepeated: Bool = false
  ) throws(WormholeError) -> [UInt8] {
    try changed { entries in
      entries["\(MessageFile.origin)"] = origin
      entries["\(MessageFile.expires)"] = expires.map { .date($0) }
      if isRepeated { entries["\(MessageFile.redelivered)"] = .boolean(true) }
    }
  }

  /// Returns the file for another attempt to carry it.
  func repeated() throws(WormholeError) -> [UInt8] {
    try changed { $0["\(MessageFile.redelivered)"] = .boolean(true) }
  }

  private func changed(
    _ change: (inout [String: PropertyListValue]) -> Void
  ) throws(WormholeError) -> [UInt8] {
    try WormholeError.writing("deliver message", name.id) {
      let content = try BinaryDecoder(limits: limits).decode(PropertyListValue.self, from: bytes)
      var entries = content.dictionaryValue ?? [:]
      change(&entries)
      return try BinaryEncoder(limits: limits).encode(PropertyListValue.dictionary(entries))
    }
  }
}
