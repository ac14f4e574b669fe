internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists

extension MessageFile {
  /// All fields but the values.
  struct Header: FileRecord, Equatable {
    var kind = ""
    var sent = Date.distantPast
    var to = ""
    var expires: Date?
    /// Nil for a message without an ordering key.
    var orderingKey: String?
    /// Nil for a message without headers.
    var headers: SenderHeaders?
    /// The file sent with the message, if any.
    var file: FileHeader?
    /// What whoever carries messages between machines has noted for itself: kept, and used by
    /// nobody else.
    var origin: PropertyListValue?
    /// Whether the message may have been handled before, on another machine.
    var isRedelivered = false

    mutating func visit(_ fields: inout some FieldVisitor) throws {
      try fields.field("kind", &kind)
      try fields.field("sent", &sent)
      try fields.field("to", &to)
      try fields.field(MessageFile.expires, &expires)
      try fields.optional("orderingKey", &orderingKey)
      try fields.optional("headers", &headers)
      try fields.optional("file", &file)
      try fields.optional(MessageFile.origin, &origin)
      try fields.field(MessageFile.redelivered, &isRedelivered, unless: false)
    }
  }

  /// A message's description of its file, which is in `files/`; see ``MessageName/fileName``.
  struct FileHeader: Codable, Equatable {
    /// The name of the sender's file; see ``receivedName``.
    var name: String
    var size: Int
    /// The CRC-32 of the file.
    var checksum: UInt32
    /// Whether the file was synced before the message was sent.
    var synced: Bool?

    /// The name for the receiver: with an underscore in place of each control character and of a
    /// leading dash.
    ///
    /// Programs split lists of files at line feeds, and take a name with a leading dash for an
    /// option. The receiver replaces the characters and the sender does not, because a sender may
    /// be any program.
    var receivedName: String {
      var text = String.UnicodeScalarView()
      for scalar in name.unicodeScalars {
        let isUnsafe = scalar.isControl || text.isEmpty && scalar == "-"
        text.append(isUnsafe ? "_" : scalar)
      }
      return String(text)
    }
  }
}
