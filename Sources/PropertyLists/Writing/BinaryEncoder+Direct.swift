import FoundationEssentials

extension BinaryWriter {
  /// Writes a leaf without asking it to encode itself; nil for every other type.
  ///
  /// `T` is the type that it was compared with, which is what makes `unsafeBitCast` right; a
  /// dynamic cast of every element would cost more than writing it.
  @inline(__always)
  func addDirectly<T>(_ value: T) -> UInt32? {
    if T.self == String.self { return add(unsafeBitCast(value, to: String.self)) }
    if T.self == Int.self { return add(Int64(unsafeBitCast(value, to: Int.self))) }
    if T.self == Double.self { return add(unsafeBitCast(value, to: Double.self)) }
    if T.self == Date.self { return add(unsafeBitCast(value, to: Date.self)) }
    if T.self == Data.self { return add(unsafeBitCast(value, to: Data.self)) }
    if T.self == Bool.self { return add(unsafeBitCast(value, to: Bool.self)) }
    return nil
  }
}
