import FoundationEssentials

extension DecodingSession {
  @inline(__always)
  func head(of object: Int) -> ObjectHead { document.read { $0.head(of: object) } }

  /// Returns whether an object represents nil.
  func isNull(_ object: Int) -> Bool {
    document.read { objects in
      let head = objects.head(of: object)
      return head.kind == .ascii && head.count == 5 && objects.string(head) == BinaryWriter.null
    }
  }

  /// Decodes an object as any type.
  ///
  /// `T` has been compared with the type of each cast, so `unsafeBitCast` is correct.
  func decode<T: Decodable>(_ type: T.Type, _ object: Int) throws -> T {
    if T.self == String.self { return unsafeBitCast(try string(object), to: T.self) }
    if T.self == Int.self { return unsafeBitCast(try integer(object) as Int, to: T.self) }
    if T.self == Double.self { return unsafeBitCast(try double(object), to: T.self) }
    if T.self == Date.self { return unsafeBitCast(try date(object), to: T.self) }
    if T.self == Data.self { return unsafeBitCast(try data(object), to: T.self) }
    if T.self == Bool.self { return unsafeBitCast(try bool(object), to: T.self) }
    if T.self == PropertyListValue.self { return unsafeBitCast(tree(object), to: T.self) }
    if T.self == [String: PropertyListValue].self, let values = dictionary(object) {
      return unsafeBitCast(values, to: T.self)
    }
    return try T(from: ObjectDecoder(session: self, object: object))
  }

  /// Returns a dictionary as its own `init(from:)` would, without the cost of `Codable`; nil for an
  /// object of another kind, whose error that function throws.
  private func dictionary(_ object: Int) -> [String: PropertyListValue]? {
    head(of: object).kind == .dictionary ? tree(object).dictionaryValue : nil
  }

  func bool(_ object: Int) throws -> Bool {
    let head = head(of: object)
    guard head.kind == .boolean else { throw mismatch(Bool.self, object) }
    return head.count == 1
  }

  func string(_ object: Int) throws -> String {
    let head = head(of: object)
    guard head.kind.isString else { throw mismatch(String.self, object) }
    return document.read { $0.string(head) }
  }

  func date(_ object: Int) throws -> Date {
    let head = head(of: object)
    guard head.kind == .date else { throw mismatch(Date.self, object) }
    return document.read { $0.date(head) }
  }

  func data(_ object: Int) throws -> Data {
    let head = head(of: object)
    guard head.kind == .data else { throw mismatch(Data.self, object) }
    return document.read { $0.data(head) }
  }

  /// Decodes an integer, also from a real with an integral value.
  func integer<T: FixedWidthInteger>(_ object: Int) throws -> T {
    let head = head(of: object)
    let value: T?
    switch head.kind {
    case .integer:
      switch document.read({ $0.integer(head) }) {
      case .integer(let integer): value = T(exactly: integer)
      case .unsigned(let integer): value = T(exactly: integer)
      default: value = nil
      }
    case .real: value = T(exactly: document.read { $0.real(head) })
    default: throw mismatch(T.self, object)
    }
    guard let value else { throw corrupted("a number not representable as \(T.self)", object) }
    return value
  }

  /// Decodes a real, also from an integer that a `Double` represents exactly.
  func double(_ object: Int) throws -> Double { try double(object, for: Double.self) }

  private func double(_ object: Int, for type: any Any.Type) throws -> Double {
    let head = head(of: object)
    if head.kind == .real { return document.read { $0.real(head) } }
    guard head.kind == .integer else { throw mismatch(type, object) }
    guard let value = document.read({ $0.integer(head) }).doubleValue else {
      throw corrupted("a number not representable as \(type)", object)
    }
    return value
  }

  func float(_ object: Int) throws -> Float {
    let double = try double(object, for: Float.self)
    let value = Float(double)
    guard value.isFinite || !double.isFinite else {
      throw corrupted("a number not representable as Float", object)
    }
    return value
  }

  /// Returns the error for an object of another type; nil is a missing value, as with Foundation.
  func mismatch(_ type: any Any.Type, _ object: Int) -> any Error {
    let isNil = isNull(object)
    let name = isNil ? "null" : head(of: object).kind.name
    let context = DecodingError.Context(
      codingPath: path(of: object), debugDescription: "\(name) where \(type) is expected")
    return isNil
      ? DecodingError.valueNotFound(type, context) : DecodingError.typeMismatch(type, context)
  }

  func corrupted(_ reason: String, _ object: Int) -> any Error {
    DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: path(of: object), debugDescription: reason))
  }
}
