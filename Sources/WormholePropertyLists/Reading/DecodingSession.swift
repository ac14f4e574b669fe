import FoundationEssentials

/// One reading of a document through `Codable`.
///
/// The session makes values out of the bytes when they are requested. Two threads must not use it
/// at once, as with every decoder: it keeps notes about the reader's position.
final class DecodingSession {
  let document: BinaryDocument
  let userInfo: [CodingUserInfoKey: any Sendable]

  /// The reader's path to each object, for coding paths: stored by object, so that going down costs
  /// no allocation.
  ///
  /// A pointer, because an array in a class would check each access for exclusivity; allocated with
  /// the session and freed with it.
  let places: UnsafeMutablePointer<ReadPosition>
  private var trees: TreeBuilder?
  /// Positions by key, for large dictionaries that are read out of order.
  private var indices = [Int: [String: Int]]()

  struct ReadPosition {
    static let none = UInt32.max

    var parent = none
    var index: UInt32 = 0
    /// The key found last: most types request keys in the order in which they were written, and
    /// request a key that may be missing several times.
    var cursor: UInt32 = 0
  }

  init(_ document: BinaryDocument, userInfo: [CodingUserInfoKey: any Sendable]) {
    self.document = document
    self.userInfo = userInfo
    places = .allocate(capacity: document.layout.count)
    places.initialize(repeating: ReadPosition(), count: document.layout.count)
  }

  deinit { places.deallocate() }

  /// Notes that the reader goes from a container to its `index`th value.
  @inline(__always)
  func descend(to object: Int, from parent: Int, index: Int) {
    places[object].parent = UInt32(truncatingIfNeeded: parent)
    places[object].index = UInt32(truncatingIfNeeded: index)
  }

  /// Returns the path from the top to an object; for a shared object, the path taken last.
  func path(of object: Int) -> [any CodingKey] {
    var path: [any CodingKey] = []
    var place = places[object]
    while place.parent != ReadPosition.none {
      let parent = Int(place.parent)
      path.append(key(Int(place.index), of: parent))
      place = places[parent]
    }
    return path.reversed()
  }

  private func key(_ index: Int, of parent: Int) -> PathKey {
    document.read { objects in
      let head = objects.head(of: parent)
      guard head.kind == .dictionary else { return PathKey(intValue: index) }
      let key = objects.reference(index, of: head)
      return PathKey(stringValue: objects.string(objects.head(of: key)))
    }
  }

  /// Returns the value of an object with everything below it.
  func tree(_ object: Int) -> PropertyListValue {
    document.read { objects in
      var builder = trees.take() ?? TreeBuilder(objectCount: objects.layout.count)
      defer { trees = builder }
      return builder.value(of: object, in: objects)
    }
  }

  /// Returns the position of a key in a dictionary.
  @inline(__always)
  func position(of key: String, in object: Int, _ head: ObjectHead) -> Int? {
    let text = key.utf8.span.bytes
    let start = Int(places[object].cursor)
    let found = document.read { objects in
      // Beyond a few keys, an index is faster than comparing all of them.
      let end = min(head.count, start + 24)
      for index in start..<max(start, end)
      where objects.isString(objects.reference(index, of: head), text) {
        return index
      }
      for index in 0..<min(start, 24)
      where objects.isString(objects.reference(index, of: head), text) {
        return index
      }
      return -1
    }
    if found >= 0 {
      places[object].cursor = UInt32(truncatingIfNeeded: found)
      return found
    }
    return head.count <= 24 ? respelled(key, head) : indexed(key, in: object, head)
  }

  /// Returns the position of an ASCII key that Swift takes for the same text as a key beyond ASCII.
  private func respelled(_ key: String, _ head: ObjectHead) -> Int? {
    guard key.utf8.contains(where: { $0 >= 0x80 }), let ascii = KeyTable.ascii(key) else {
      return nil
    }
    return document.read { objects in
      (0..<head.count).first(where: {
        objects.isString(objects.reference($0, of: head), ascii.span.bytes)
      })
    }
  }

  private func indexed(_ key: String, in object: Int, _ head: ObjectHead) -> Int? {
    if indices[object] == nil {
      let pairs = document.read { objects in
        (0..<head.count).map {
          (objects.string(objects.head(of: objects.reference($0, of: head))), $0)
        }
      }
      indices[object] = Dictionary(pairs) { first, _ in first }
    }
    return indices[object]?[key]
  }
}
