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

    func encode(into container: inout KeyedEncodingContainer<Key>) throws {
      try container.encode(kind, forKey: .kind)
      try container.encode(sent, forKey: .sent)
      try container.encode(to, forKey: .to)
      try container.encodeIfPresent(expires, forKey: .expires)
    }
  }

  /// One message about to be written.
  struct Single<Value: Encodable>: Encodable {
    let header: Header
    let value: Value

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try header.encode(into: &container)
      try container.encode(value, forKey: .value)
    }
  }

  /// Several messages about to be written.
  struct Batch<Value: Encodable>: Encodable {
    let header: Header
    let values: ArraySlice<Value>

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try header.encode(into: &container)
      try container.encode(Array(values), forKey: .values)
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

  /// How many values a file holds; reads none of them.
  struct Count: Decodable {
    let count: Int?

    private struct Nothing: Decodable { init(from decoder: any Decoder) {} }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      guard container.contains(.values) else {
        count = container.contains(.value) ? 1 : nil
        return
      }
      count = try container.nestedUnkeyedContainer(forKey: .values).count
    }
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
