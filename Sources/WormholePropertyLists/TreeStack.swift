/// The containers that are open while a text format is read, innermost last.
///
/// Nested containers of the text nest here, and not on the thread's stack.
struct TreeStack {
  private var frames: [Frame] = []
  private var objects = 0
  private var result: PropertyListValue?
  let limits: PropertyListLimits

  struct Frame {
    var isDictionary: Bool
    var array: [PropertyListValue] = []
    var dictionary: [String: PropertyListValue] = [:]
    var key: String?
  }

  init(limits: PropertyListLimits) { self.limits = limits }

  var isEmpty: Bool { frames.isEmpty }

  /// Whether the innermost container is a dictionary; nil if none is open.
  var isInDictionary: Bool? { frames.last?.isDictionary }

  /// Whether a key has no value yet.
  var hasKey: Bool { frames.last?.key != nil }

  /// The path to the next value.
  var path: [any CodingKey] {
    frames.map { frame in
      frame.isDictionary
        ? PathKey(stringValue: frame.key ?? "") : PathKey(intValue: frame.array.count)
    }
  }

  mutating func open(isDictionary: Bool, at offset: Int) throws(PropertyListError) {
    guard frames.count < limits.depth else { throw .limit(.depth, limits, at: offset) }
    frames.append(Frame(isDictionary: isDictionary))
  }

  /// Removes the innermost container from the stack, and returns the finished value.
  mutating func close() -> PropertyListValue? {
    guard let frame = frames.popLast() else { return nil }
    return frame.isDictionary ? .dictionary(frame.dictionary) : .array(frame.array)
  }

  mutating func setKey(_ key: String, at offset: Int) throws(PropertyListError) {
    try count(at: offset)
    guard frames[frames.count - 1].dictionary[key] == nil else {
      throw PropertyListError(.duplicateKey, "the key '\(key)' occurs twice", at: offset)
    }
    frames[frames.count - 1].key = key
  }

  /// Adds a value at the current position of the text; the caller has checked that the position
  /// allows a value.
  mutating func add(_ value: PropertyListValue, at offset: Int) throws(PropertyListError) {
    try count(at: offset)
    guard let last = frames.indices.last else {
      result = value
      return
    }
    if frames[last].isDictionary {
      guard let key = frames[last].key else {
        throw PropertyListError(.malformed, "a value without a key", at: offset)
      }
      frames[last].dictionary[key] = value
      frames[last].key = nil
    } else {
      frames[last].array.append(value)
    }
  }

  /// Returns the value of a text that was read up to the cursor.
  func value(at cursor: TextCursor) throws(PropertyListError) -> PropertyListValue {
    guard cursor.isAtEnd else { throw cursor.failure("text after the end") }
    guard let result else { throw cursor.failure("no value") }
    return result
  }

  private mutating func count(at offset: Int) throws(PropertyListError) {
    objects += 1
    guard objects <= limits.tree.count else { throw .limit(limits.tree.bound, limits, at: offset) }
  }
}

extension PropertyListLimits {
  /// The number of objects that a text may have, where nothing is shared, and the limit that sets
  /// the number.
  fileprivate var tree: (count: Int, bound: PropertyListError.Bound) {
    reached < objects ? (reached, .reached) : (objects, .objects)
  }
}

/// A walk through a value, for a text format that writes containers around their content.
///
/// Dictionaries are walked in the order of their keys, so that equal values give equal texts.
struct TreeWalk {
  enum Step {
    case open(PropertyListValue, isEmpty: Bool)
    case close(isDictionary: Bool)
    case leaf(PropertyListValue)
  }

  /// A step, with its key and position.
  struct Item {
    var step: Step
    var key: String?
    var isFirst: Bool
    var depth: Int
  }

  private var waiting: [Item]
  private let limits: PropertyListLimits
  private var objects = 0

  init(_ value: PropertyListValue, limits: PropertyListLimits) {
    self.limits = limits
    waiting = [Self.item(value, key: nil, isFirst: true, depth: 0)]
  }

  mutating func next() throws(PropertyListError) -> Item? {
    guard let item = waiting.popLast() else { return nil }
    guard case .open(let value, _) = item.step else { return item }
    guard item.depth < limits.depth else { throw .limit(.depth, limits) }
    let depth = item.depth + 1
    if case .array(let values) = value {
      waiting.append(
        Item(step: .close(isDictionary: false), key: nil, isFirst: values.isEmpty, depth: depth - 1)
      )
      for index in values.indices.reversed() {
        waiting.append(Self.item(values[index], key: nil, isFirst: index == 0, depth: depth))
      }
      objects += values.count
    } else if case .dictionary(let values) = value {
      waiting.append(
        Item(step: .close(isDictionary: true), key: nil, isFirst: values.isEmpty, depth: depth - 1))
      let pairs = values.sorted { $0.key < $1.key }
      for index in pairs.indices.reversed() {
        waiting.append(
          Self.item(pairs[index].value, key: pairs[index].key, isFirst: index == 0, depth: depth))
      }
      objects += 2 * values.count
    }
    guard objects < limits.tree.count else { throw .limit(limits.tree.bound, limits) }
    return item
  }

  private static func item(
    _ value: PropertyListValue, key: String?, isFirst: Bool, depth: Int
  ) -> Item {
    let step: Step =
      switch value {
      case .array(let values): .open(value, isEmpty: values.isEmpty)
      case .dictionary(let values): .open(value, isEmpty: values.isEmpty)
      default: .leaf(value)
      }
    return Item(step: step, key: key, isFirst: isFirst, depth: depth)
  }
}
