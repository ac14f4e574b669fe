internal import WormholePropertyLists

extension [String: PropertyListValue] {
  /// Returns the bytes of a file with this dictionary; a larger file would not be read.
  func encoded(atMost bytes: Int) throws -> [UInt8] {
    var limits = PropertyListLimits.default
    limits.bytes = bytes
    return try BinaryEncoder(limits: limits).encode(PropertyListValue.dictionary(self))
  }
}

/// Returns the bytes from `body`; throws an error with the caller's names if there are too many.
func encoding(
  _ operation: String, _ name: String, hint: String? = nil, _ body: () throws -> [UInt8]
) throws(WormholeError) -> [UInt8] {
  do {
    return try body()
  } catch {
    throw WormholeError(.tooLarge, operation, name, because: "\(error)", hint: hint)
  }
}
