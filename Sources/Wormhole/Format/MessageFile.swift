internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The format of a message on disk: a dictionary of `kind`, `sent`, `to`, perhaps `expires`,
/// `headers` and `file`, and `value`; in a batch, `values`.
///
/// A message that came from another machine may also have `origin` and `redelivered`.
///
/// The file's name contains the sender. Values are encoded straight into the dictionary, and read
/// from the dictionary only on request.
enum MessageFile {
  enum Key: String, CodingKey {
    case kind, sent, to, expires, orderingKey, headers, file, origin, redelivered, value, values
  }

  /// All fields but the values.
  struct Header: Decodable, Equatable {
    var kind: String
    var sent: Date
    var to: String
    var expires: Date?
    /// Nil for a message without an ordering key.
    var orderingKey: String?
    /// Nil for a message without headers.
    var headers: MessageHeaders?
    /// The file sent with the message, if any.
    var file: Attached?
    /// What whoever carries messages between machines has noted for itself: kept, and used by
    /// nobody else.
    var origin: PropertyListValue?
    /// Whether the message may have been handled before, on another machine.
    var isRedelivered = false

    init(from decoder: any Decoder) throws {
      let storage = try decoder.container(keyedBy: Key.self)
      kind = try storage.decode(String.self, forKey: .kind)
      sent = try storage.decode(Date.self, forKey: .sent)
      to = try storage.decode(String.self, forKey: .to)
      expires = try storage.decodeIfPresent(Date.self, forKey: .expires)
      orderingKey = try storage.decodeIfPresent(String.self, forKey: .orderingKey)
      headers = try storage.decodeIfPresent(MessageHeaders.self, forKey: .headers)
      file = try storage.decodeIfPresent(Attached.self, forKey: .file)
      origin = try storage.decodeIfPresent(PropertyListValue.self, forKey: .origin)
      isRedelivered = try storage.decodeIfPresent(Bool.self, forKey: .redelivered) ?? false
    }

    init(
      kind: String, sent: Date, to: String, expires: Date?, orderingKey: String? = nil,
      headers: MessageHeaders? = nil, file: Attached? = nil
    ) {
      self.kind = kind
      self.sent = sent
      self.to = to
      self.expires = expires
      self.orderingKey = orderingKey
      self.headers = headers
      self.file = file
    }
  }

  /// A message's description of its file, which is in `files/`; see ``MessageName/fileName``.
  struct Attached: Codable, Equatable {
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

  /// The value of a single message.
  struct Opened<Value: Decodable>: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
      value = try decoder.container(keyedBy: Key.self).decode(Value.self, forKey: .value)
    }
  }

  /// The values of a batch, each decoded separately: a failure spoils only its own value.
  struct OpenedBatch<Value: Decodable>: Decodable {
    let values: [Result<Value, any Error>]

    private struct Element: Decodable {
      let result: Result<Value, any Error>
      init(from decoder: any Decoder) throws { result = Result { try Value(from: decoder) } }
    }

    init(from decoder: any Decoder) throws {
      let storage = try decoder.container(keyedBy: Key.self)
      // Data and dates are not dictionaries: the decoder must be asked for them by type.
      if let values = try? storage.decode([Value].self, forKey: .values) {
        self.values = values.map { .success($0) }
      } else {
        values = try storage.decode([Element].self, forKey: .values).map(\.result)
      }
    }
  }

  /// An opened file: validated once, with its header and the location of its values.
  struct Document: Sendable {
    let list: BinaryDocument
    let header: Header
    private let values: BinaryDocument.Elements?

    var count: Int { values?.count ?? 0 }

    /// - Parameter bytes: the bytes of the file, from a read that has checked the seal.
    init(_ bytes: [UInt8], _ decoder: BinaryDecoder) throws {
      list = try decoder.open(bytes, isSealChecked: true)
      let fields = list.fields
      values = fields.flatMap { fields in
        fields.elements(of: "values", near: 3) ?? fields.element("value", near: 3)
      }
      // The decoder reports a missing or mistyped field better.
      let usual = values == nil ? nil : fields.flatMap { Header(usual: $0) }
      header = try usual ?? decoder.decode(Header.self, from: list)
    }

    /// Returns a value of one of the commonest types, for which `Codable` would take several times
    /// as long; nil for another type.
    @inline(__always)
    func leaf<Value>(_ index: Int, as type: Value.Type) -> Value? {
      guard let values, index < values.count else { return nil }
      // `Value` equals the compared type, which makes `unsafeBitCast` right.
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
  /// A fast path for the usual field order.
  ///
  /// Nil: the general decoder must be used, for valid and invalid files.
  ///
  /// - Parameter fields: the fields of a file with `value` or `values`.
  init?(usual fields: BinaryDocument.Fields) {
    guard case .string(let kind) = fields.field("kind", near: 0),
      case .date(let sent) = fields.field("sent", near: 1),
      case .string(let to) = fields.field("to", near: 2)
    else { return nil }
    var expires: Date?
    switch fields.field("expires", near: 3) {
    case .date(let date): expires = Date(timeIntervalSinceReferenceDate: date)
    case nil: break
    default: return nil
    }
    // The headers, the file and the origin of a message are nested dictionaries, which only the
    // general decoder reads; a further key may be any of them, or an ordering key.
    guard fields.count == (expires == nil ? 4 : 5) else { return nil }
    self.init(
      kind: kind, sent: Date(timeIntervalSinceReferenceDate: sent), to: to, expires: expires)
  }

  /// Writes the header beside the values.
  fileprivate func add(to leaves: BinaryLeaves) throws {
    leaves.add("kind", kind)
    leaves.add("sent", sent)
    leaves.add("to", to)
    if let expires { leaves.add("expires", expires) }
    if let orderingKey { leaves.add("orderingKey", orderingKey) }
    if let headers { leaves.add("headers", headers.fields) }
    if let file { try leaves.add("file", file) }
    if let origin { try leaves.add("origin", origin) }
    if isRedelivered { leaves.add("redelivered", true) }
  }
}

extension BinaryEncoder {
  /// Encodes a file with one message.
  func seal<Value: Encodable>(_ header: MessageFile.Header, _ value: Value) throws -> [UInt8] {
    try encode(value, forKey: "value", header.add(to:))
  }

  /// Encodes a file with one message that may have an attached file and no value.
  func seal<Value: Encodable>(
    _ header: MessageFile.Header, optional value: Value?
  ) throws -> [UInt8] {
    guard let value else { return try encode(header.add(to:)) }
    return try seal(header, value)
  }

  /// Encodes a file with several messages.
  func seal<Value: Encodable>(
    _ header: MessageFile.Header, batch values: ArraySlice<Value>
  ) throws -> [UInt8] {
    try encode(elements: values, forKey: "values", header.add(to:))
  }
}
