/// The reason why a property list could not be read or written.
package struct PropertyListError: Error, Sendable {
  /// The kind of failure, for callers with a reaction to each kind.
  package enum Kind: Sendable, Hashable {
    /// The bytes are not a property list at all.
    case notPropertyList
    /// The structure is damaged or against the format.
    case malformed
    /// The format allows the value, but this package's property lists cannot hold it.
    case unsupported
    /// The checksum is present and wrong: the file was changed after it was written.
    case checksum
    /// A dictionary contains a key twice.
    case duplicateKey
    /// A limit was exceeded.
    case limit(Bound)
    /// The value has another type than the requested type.
    case typeMismatch
    /// A key that the type requires is missing.
    case missingKey
    /// A required value is absent or null.
    case missingValue
    /// The value has the right type, but cannot be accepted or expressed.
    case invalidValue
  }

  /// The limit that was exceeded, by the name of its property in `PropertyListLimits`.
  package enum Bound: String, Sendable, Hashable {
    case bytes, depth, objects, reached, expandedBytes
  }

  package var kind: Kind
  package var reason: String
  /// The position in the bytes, if the failure concerns the bytes.
  package var offset: Int?
  /// The path from the top to the value, if the failure concerns a value.
  package var codingPath: [any CodingKey]
  /// Whether the failure happened while writing, not while reading.
  package var isWriting: Bool

  package init(
    _ kind: Kind, _ reason: String, at offset: Int? = nil, path: [any CodingKey] = [],
    isWriting: Bool = false
  ) {
    self.kind = kind
    self.reason = reason
    self.offset = offset
    self.codingPath = path
    self.isWriting = isWriting
  }

  static func limit(_ bound: Bound, _ limits: PropertyListLimits, at offset: Int? = nil) -> Self {
    let limit =
      switch bound {
      case .bytes: "more than \(limits.bytes) bytes"
      case .depth: "nested more than \(limits.depth) deep"
      case .objects: "more than \(limits.objects) objects"
      case .reached: "too many objects, with shared objects counted each time"
      case .expandedBytes:
        "more than \(limits.expandedBytes) bytes, with shared objects counted each time"
      }
    return Self(.limit(bound), "\(limit) (limit: \(bound.rawValue))", at: offset)
  }
}

extension PropertyListError: CustomStringConvertible {
  package var description: String {
    var text = isWriting ? "cannot write property list" : "cannot read property list"
    if !codingPath.isEmpty { text += " at '\(codingPath.pathDescription)'" }
    text += ": \(reason)"
    if let offset { text += " (byte \(offset))" }
    return text
  }
}

extension PropertyListError {
  /// Translates the standard library's coding errors into errors of this module; any other error is
  /// the caller's own.
  package static func translating(_ error: any Error) -> any Error {
    switch error {
    case let error as DecodingError: Self(error)
    case let error as EncodingError: Self(error)
    default: error
    }
  }

  private init(_ error: DecodingError) {
    switch error {
    case .typeMismatch(_, let context):
      self.init(.typeMismatch, context.debugDescription, path: context.codingPath)
    case .valueNotFound(_, let context):
      self.init(.missingValue, context.debugDescription, path: context.codingPath)
    case .keyNotFound(let key, let context):
      self.init(.missingKey, "no key '\(key.stringValue)'", path: context.codingPath)
    case .dataCorrupted(let context):
      self.init(.invalidValue, context.debugDescription, path: context.codingPath)
    @unknown default:
      self.init(.invalidValue, String(describing: error))
    }
  }

  private init(_ error: EncodingError) {
    guard case .invalidValue(_, let context) = error else {
      self.init(.invalidValue, String(describing: error), isWriting: true)
      return
    }
    if let limit = context.underlyingError as? PropertyListError {
      self = limit
      codingPath = context.codingPath
      isWriting = true
    } else {
      self.init(
        .invalidValue, context.debugDescription, path: context.codingPath, isWriting: true)
    }
  }
}

extension [any CodingKey] {
  /// The path as a person writes it: `seats[3].row`.
  package var pathDescription: String {
    var text = ""
    for key in self {
      if let index = key.intValue {
        text += "[\(index)]"
      } else {
        text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
    return text
  }
}

/// A step of a coding path, or any key of a dictionary, as the file contains it.
package struct PathKey: CodingKey {
  package var stringValue: String
  package var intValue: Int?

  package init(stringValue: String) {
    self.stringValue = stringValue
    self.intValue = nil
  }

  package init(intValue: Int) {
    self.stringValue = String(intValue)
    self.intValue = intValue
  }

  static let `super` = PathKey(stringValue: "super")
}
