/// A dictionary that compares keys as long as they are few.
///
/// Hashing a key takes about as long as comparing a dozen keys, and most of the tables that a
/// notice of the kernel is looked up in have one entry or two.
///
/// The functions are inlinable, and the type is public for that reason alone: see ``Monitor``.
public struct SmallDictionary<Key: Hashable, Value> {
  /// The entries while there are few, in no particular order.
  @usableFromInline var few: [(key: Key, value: Value)] = []
  /// The entries once there were many; nil before.
  @usableFromInline var many: [Key: Value]?

  /// Creates an empty dictionary.
  @inlinable public init() {}

  @usableFromInline static var most: Int { 8 }

  /// Whether there is no value.
  @inlinable public var isEmpty: Bool { many?.isEmpty ?? few.isEmpty }

  /// All values, in no particular order.
  @inlinable public var values: [Value] { many.map { Array($0.values) } ?? few.map(\.value) }

  /// The value of a key; nil removes it.
  @inlinable public subscript(key: Key) -> Value? {
    get {
      if let many { return many[key] }
      for entry in few where entry.key == key { return entry.value }
      return nil
    }
    set { replace(key, newValue) }
  }

  /// Removes the value of a key, and returns it.
  @inlinable public mutating func removeValue(forKey key: Key) -> Value? {
    replace(key, nil)
  }

  /// Stores a value, or removes it for nil; returns the previous value.
  @inlinable @discardableResult
  public mutating func replace(_ key: Key, _ value: Value?) -> Value? {
    if many != nil {
      guard let value else { return many?.removeValue(forKey: key) }
      return many?.updateValue(value, forKey: key)
    }
    guard let place = few.firstIndex(where: { $0.key == key }) else {
      if let value { add(key, value) }
      return nil
    }
    let previous = few[place].value
    if let value {
      few[place].value = value
    } else {
      few.swapAt(place, few.count - 1)
      few.removeLast()
    }
    return previous
  }

  @inlinable mutating func add(_ key: Key, _ value: Value) {
    few.append((key, value))
    guard few.count > Self.most else { return }
    many = Dictionary(uniqueKeysWithValues: few.map { ($0.key, $0.value) })
    few = []
  }
}

extension SmallDictionary: Sendable where Key: Sendable, Value: Sendable {}
