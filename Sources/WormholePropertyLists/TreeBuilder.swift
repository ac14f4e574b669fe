/// A builder that makes values out of the objects of a file.
///
/// Each object is built once: shared objects share their storage, so that the memory grows with the
/// file, and not with its expanded size.
struct TreeBuilder {
  private var values: [PropertyListValue?]
  /// The dictionary built last, because the next dictionary often has the same keys.
  private var last = ObjectHead(kind: .dictionary, start: 0, count: -1)
  /// The position of each key of the last dictionary, once a second dictionary has had the same
  /// keys.
  private var positions: [String: Int]?

  init(objectCount: Int) {
    values = Array(repeating: nil, count: objectCount)
  }

  /// Returns the value of an object with everything below it, built with a stack of its own.
  mutating func value(of object: Int, in objects: BinaryObjects) -> PropertyListValue {
    if objects.kind(of: object).isContainer, values[object] == nil {
      build(object, objects)
    }
    return finished(object, objects)
  }

  private mutating func build(_ top: Int, _ objects: BinaryObjects) {
    var stack = [Frame(top, objects)]
    while let frame = stack.last {
      if let child = nextUnbuilt(frame, objects) {
        stack[stack.count - 1].next = child.index + 1
        stack.append(Frame(child.object, objects))
      } else {
        values[frame.object] = container(frame.head, objects)
        stack.removeLast()
      }
    }
  }

  private struct Frame {
    var object: Int
    var head: ObjectHead
    var next: Int
    var end: Int

    init(_ object: Int, _ objects: BinaryObjects) {
      self.object = object
      head = objects.head(of: object)
      next = head.kind == .dictionary ? head.count : 0
      end = next + head.count
    }
  }

  private func nextUnbuilt(
    _ frame: Frame, _ objects: BinaryObjects
  ) -> (object: Int, index: Int)? {
    var index = frame.next
    while index < frame.end {
      let child = objects.reference(index, of: frame.head)
      if objects.kind(of: child).isContainer, values[child] == nil { return (child, index) }
      index += 1
    }
    return nil
  }

  private mutating func container(
    _ head: ObjectHead, _ objects: BinaryObjects
  ) -> PropertyListValue {
    if head.kind == .array {
      var array: [PropertyListValue] = []
      array.reserveCapacity(head.count)
      for index in 0..<head.count {
        array.append(finished(objects.reference(index, of: head), objects))
      }
      return .array(array)
    }
    return .dictionary(dictionary(head, objects))
  }

  /// Hashing the keys is most of the work, so a dictionary with the keys of its predecessor takes
  /// over the predecessor's layout: `mapValues` does not hash again.
  private mutating func dictionary(
    _ head: ObjectHead, _ objects: BinaryObjects
  ) -> [String: PropertyListValue] {
    let length = head.count * objects.layout.referenceSize
    guard head.count == last.count, objects.bytes.same(head.start, last.start, count: length) else {
      last = head
      positions = nil
      var dictionary = [String: PropertyListValue](minimumCapacity: head.count)
      for index in 0..<head.count {
        dictionary[key(index, head, objects)] =
          finished(objects.reference(head.count + index, of: head), objects)
      }
      return dictionary
    }
    if positions == nil {
      var made = [String: Int](minimumCapacity: head.count)
      for index in 0..<head.count { made[key(index, head, objects)] = index }
      positions = made
    }
    return positions.unsafelyUnwrapped.mapValues { index in
      finished(objects.reference(head.count + index, of: head), objects)
    }
  }

  private mutating func key(
    _ index: Int, _ head: ObjectHead, _ objects: BinaryObjects
  ) -> String {
    // Validation has established that keys are strings.
    finished(objects.reference(index, of: head), objects).stringValue ?? ""
  }

  /// Returns the value of a leaf, or of a container that has been built.
  private mutating func finished(_ object: Int, _ objects: BinaryObjects) -> PropertyListValue {
    let head = objects.head(of: object)
    switch head.kind {
    case .boolean: return .boolean(head.count == 1)
    case .integer: return objects.integer(head)
    case .real: return .real(objects.real(head))
    case .date: return .date(objects.date(head))
    case .data, .ascii, .utf16, .array, .dictionary: break
    }
    if let value = values[object] { return value }
    let value: PropertyListValue =
      head.kind == .data ? .data(objects.data(head)) : .string(objects.string(head))
    values[object] = value
    return value
  }
}
