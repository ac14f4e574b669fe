internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// The form of a message on disk: a dictionary of `kind`, `sent`, `to`, perhaps `expires`, perhaps
/// `file`, and `value`; in a batch, `values`.
///
/// Who sent it stands in the file's name. Values are encoded straight into it, and read from it
/// only by those who ask for them.
enum MessageFile {
  enum Key: String, CodingKey { case kind, sent, to, expires, file, value, values }

  /// All but the values.
  struct Header: Decodable, Equatable {
    var kind: String
    var sent: Date
    var to: String
    var expires: Date?
    /// The file that belongs to it, if one does.
    var file: Attached?

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      kind = try container.decode(String.self, forKey: .kind)
      sent = try container.decode(Date.self, forKey: .sent)
      to = try container.decode(String.self, forKey: .to)
      expires = try container.decodeIfPresent(Date.self, forKey: .expires)
      file = try container.decodeIfPresent(Attached.self, forKey: .file)
    }

    init(kind: String, sent: Date, to: String, expires: Date?, file: Attached? = nil) {
      self.kind = kind
      self.sent = sent
      self.to = to
      self.expires = expires
      self.file = file
    }
  }

  /// What a message says of its file, which lies in `files/`; see ``MessageName/fileName``.
  struct Attached: Codable, Equatable {
    /// What the sender's file was called; the sender may be anybody.
    var name: String
    var size: Int
    /// Its CRC-32.
    var checksum: UInt32
    /// Whether it was synced before the message was sent.
    var synced: Bool?
  }

  /// A message with a file, about to be written.
  struct WithFile<Value: Encodable>: Encodable {
    let header: Header
    let file: Attached
    /// What is told of the file; nil if that is nothing.
    let value: Value?

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(header.kind, forKey: .kind)
      try container.encode(header.sent, forKey: .sent)
      try container.encode(header.to, forKey: .to)
      try container.encodeIfPresent(header.expires, forKey: .expires)
      try container.encode(file, forKey: .file)
      try container.encodeIfPresent(value, forKey: .value)
    }
  }

  /// The value of a single message.
  struct Opened<Value: Decodable>: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
      value = try decoder.container(keyedBy: Key.self).decode(Value.self, forKey: .value)
    }
  }

  /// The values of a batch, each for itself: one that does not decode spoils no other.
  struct OpenedBatch<Value: Decodable>: Decodable {
    let values: [Result<Value, any Error>]

    private struct Element: Decodable {
      let result: Result<Value, any Error>
      init(from decoder: any Decoder) throws { result = Result { try Value(from: decoder) } }
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      // Data and dates are no dictionaries: the decoder has to be asked for them by type.
      if let values = try? container.decode([Value].self, forKey: .values) {
        self.values = values.map { .success($0) }
      } else {
        values = try container.decode([Element].self, forKey: .values).map(\.result)
      }
    }
  }

  /// A file that has been opened: validated once, with its header and where its values are.
  struct Document: Sendable {
    let list: BinaryDocument
    let header: Header
    private let values: BinaryDocument.Elements?

    var count: Int { values?.count ?? 0 }

    /// - Parameter bytes: as they were read, which checks the seal.
    init(_ bytes: [UInt8], _ decoder: BinaryDecoder) throws {
      list = try decoder.open(bytes, isSealChecked: true)
      let fields = list.fields
      values = fields.flatMap { fields in
        fields.elements(of: "values", near: 3) ?? fields.element("value", near: 3)
      }
      // What is missing or of another type, the decoder says better.
      header = try fields.flatMap { Header(usual: $0) } ?? decoder.decode(Header.self, from: list)
    }

    /// A value of the commonest types, which the ways of `Codable` would take several times as
    /// long for; nil if it is of another.
    @inline(__always)
    func leaf<Value>(_ index: Int, as type: Value.Type) -> Value? {
      guard let values, index < values.count else { return nil }
      // `Value` is the type that it was compared with, which is what makes `unsafeBitCast` right.
      if Value.self == Data.self {
        return list.data(index, of: values).map { unsafeBitCast($0, to: Value.self) }
      }
      if Value.self == String.self {
        return list.string(index, of: values).map { unsafeBitCast($0, to: Value.self) }
      }
      return nil
    }
  }
}

extension MessageFile.Header {
  /// As everybody writes it; nil for what is not, good or bad.
  init?(usual fields: BinaryDocument.Fields) {
    // A file is described in a dictionary of its own.
    guard !fields.has("file", near: 3), case .string(let kind) = fields.field("kind", near: 0),
      case .date(let sent) = fields.field("sent", near: 1),
      case .string(let to) = fields.field("to", near: 2)
    else { return nil }
    var expires: Date?
    switch fields.field("expires", near: 3) {
    case .date(let date): expires = Date(timeIntervalSinceReferenceDate: date)
    case nil: break
    default: return nil
    }
    self.init(
      kind: kind, sent: Date(timeIntervalSinceReferenceDate: sent), to: to, expires: expires)
  }

  /// Writes it beside the values.
  fileprivate func add(to leaves: BinaryLeaves) {
    leaves.add("kind", kind)
    leaves.add("sent", sent)
    leaves.add("to", to)
    if let expires { leaves.add("expires", expires) }
  }
}

extension BinaryEncoder {
  /// The file of one message.
  func seal<Value: Encodable>(_ header: MessageFile.Header, _ value: Value) throws -> [UInt8] {
    try encode(value, forKey: "value", header.add(to:))
  }

  /// The file of several.
  func seal<Value: Encodable>(
    _ header: MessageFile.Header, batch values: ArraySlice<Value>
  ) throws -> [UInt8] {
    try encode(elements: values, forKey: "values", header.add(to:))
  }
}

/// What stands in place of a kind for those who name none: the type's name.
enum MessageKind {
  private static let names = Monitor<[ObjectIdentifier: String]>([:])

  /// Looked up once, as the runtime builds the name anew each time.
  static func name<Value>(of type: Value.Type) -> String {
    names.withLock { names in
      if let name = names[ObjectIdentifier(type)] { return name }
      let name = String(describing: type)
      names[ObjectIdentifier(type)] = name
      return name
    }
  }
}
