internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// The form of a message on disk: a dictionary of `kind`, `sent`, `to`, perhaps `expires`, and
/// `value`; in a batch, `values`.
///
/// Who sent it stands in the file's name. Values are encoded straight into it, and read from it
/// only by those who ask for them.
enum MessageFile {
  enum Key: String, CodingKey { case kind, sent, to, expires, value, values }

  /// All but the values.
  struct Header: Decodable, Equatable {
    var kind: String
    var sent: Date
    var to: String
    var expires: Date?

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      kind = try container.decode(String.self, forKey: .kind)
      sent = try container.decode(Date.self, forKey: .sent)
      to = try container.decode(String.self, forKey: .to)
      expires = try container.decodeIfPresent(Date.self, forKey: .expires)
    }

    init(kind: String, sent: Date, to: String, expires: Date?) {
      self.kind = kind
      self.sent = sent
      self.to = to
      self.expires = expires
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

  /// A file that has been opened: validated once, with its header and how many values it holds.
  struct Document: Sendable {
    let list: BinaryDocument
    let header: Header
    let count: Int

    init(_ bytes: [UInt8], _ decoder: BinaryDecoder) throws {
      list = try decoder.open(bytes)
      guard let fields = list.fields, let header = Header(usual: fields) else {
        // What is missing or of another type, it says better.
        header = try decoder.decode(Header.self, from: list)
        count = list.fields.map(Self.count) ?? 0
        return
      }
      self.header = header
      count = Self.count(fields)
    }

    private static func count(_ fields: BinaryDocument.Fields) -> Int {
      fields.count(ofArray: "values") ?? (fields["value"] == nil ? 0 : 1)
    }
  }
}

extension MessageFile.Header {
  /// As everybody writes it; nil for what is not, good or bad.
  init?(usual fields: BinaryDocument.Fields) {
    guard case .string(let kind) = fields["kind"], case .date(let sent) = fields["sent"],
      case .string(let to) = fields["to"]
    else { return nil }
    var expires: Date?
    switch fields["expires"] {
    case .date(let date): expires = Date(timeIntervalSinceReferenceDate: date)
    case nil: break
    default: return nil
    }
    self.init(
      kind: kind, sent: Date(timeIntervalSinceReferenceDate: sent), to: to, expires: expires)
  }

  /// What is written beside the values.
  var fields: [(key: String, leaf: BinaryDocument.Field)] {
    var fields: [(key: String, leaf: BinaryDocument.Field)] = [
      ("kind", .string(kind)), ("sent", .date(sent.timeIntervalSinceReferenceDate)),
      ("to", .string(to)),
    ]
    if let expires { fields.append(("expires", .date(expires.timeIntervalSinceReferenceDate))) }
    return fields
  }
}

extension BinaryEncoder {
  /// The file of one message.
  func seal<Value: Encodable>(_ header: MessageFile.Header, _ value: Value) throws -> [UInt8] {
    try encode(header.fields, value, forKey: MessageFile.Key.value.rawValue)
  }

  /// The file of several.
  func seal<Value: Encodable>(
    _ header: MessageFile.Header, batch values: ArraySlice<Value>
  ) throws -> [UInt8] {
    try encode(header.fields, Array(values), forKey: MessageFile.Key.values.rawValue)
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
