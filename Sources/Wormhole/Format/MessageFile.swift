internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The format of a message on disk: a dictionary of the fields of ``Header``, and of `value`; in a
/// batch, `values`.
///
/// The file's name contains the sender. Values are encoded straight into the dictionary, and read
/// from the dictionary only on request.
enum MessageFile {
  /// The keys of the values, of which each file has one, beside the fields of the header.
  enum ValueKey: String, CodingKey { case value, values }

  /// The fields that whoever carries messages between machines changes.
  static let expires: StaticString = "expires"
  static let origin: StaticString = "origin"
  static let redelivered: StaticString = "redelivered"

  /// The values of a batch, each decoded separately: a failure spoils only its own value.
  struct OpenedBatch<Value: Decodable>: Decodable {
    let values: [Result<Value, any Error>]

    private struct Element: Decodable {
      let result: Result<Value, any Error>
      init(from decoder: any Decoder) throws {
        // The decoder itself translates only the error that ends the decoding.
        result = Result { try Value(from: decoder) }.mapError(PropertyListError.translating)
      }
    }

    init(from decoder: any Decoder) throws {
      let storage = try decoder.container(keyedBy: ValueKey.self)
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
      header = try Header(list, decoder, others: values == nil ? 0 : 1)
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

extension BinaryDecoder {
  /// Decodes the value of a single message.
  func value<Value: Decodable>(as type: Value.Type, in file: BinaryDocument) throws -> Value {
    try decode(type, requiredKey: MessageFile.ValueKey.value.rawValue, from: file)
  }
}
