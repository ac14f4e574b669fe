extension BinaryValidator {
  /// Measures every container after its children.
  ///
  /// Writers number parents before children, so a pass in reverse order nearly always suffices.
  mutating func measureContainers() throws(PropertyListError) {
    var isForward = true
    for object in stride(from: layout.count - 1, through: 0, by: -1)
    where notes[object].reached == 0 {
      guard try measure(object) else {
        isForward = false
        break
      }
    }
    if !isForward { try walk() }
  }

  /// Walks down from the top with a stack of its own, and finds cycles.
  private mutating func walk() throws(PropertyListError) {
    var stack = [(object: layout.top, next: 0)]
    for object in notes.indices {
      notes[object].mark = 0
      let offset = objects.offset(of: object)
      let head = objects.head(at: offset)
      guard head.kind.isContainer else { continue }
      notes[object].reached = 0
      // The container's own size again: a measured container's note includes its children.
      notes[object].bytes = head.start + head.length(referenceSize: layout.referenceSize) - offset
    }
    lastKeys = KeyRun()
    while let (object, next) = stack.last {
      let head = objects.head(of: object)
      let references = head.kind == .dictionary ? 2 * head.count : head.count
      guard head.kind.isContainer, next < references else {
        if head.kind.isContainer {
          notes[object].mark = 0
          _ = try measure(object)
        }
        stack.removeLast()
        continue
      }
      notes[object].mark = 1
      stack[stack.count - 1].next += 1
      let child = objects.reference(next, of: head)
      guard notes[child].reached == 0 else { continue }
      guard notes[child].mark == 0 else {
        throw PropertyListError(
          .malformed, "a container that contains itself", at: objects.offset(of: child))
      }
      guard stack.count < limits.depth else { throw .limit(.depth, limits) }
      stack.append((child, 0))
    }
  }

  /// Measures a container; returns false if a child has not been measured.
  private mutating func measure(_ object: Int) throws(PropertyListError) -> Bool {
    let head = objects.head(of: object)
    var reached = 1
    var size = notes[object].bytes
    var height: UInt32 = 0
    var first = 0
    var end = head.count
    if head.kind == .dictionary {
      try checkKeys(of: object, head)
      reached += lastKeys.reached
      size += lastKeys.bytes
      first = head.count
      end = 2 * head.count
    }
    for index in first..<end {
      let child = notes[objects.reference(index, of: head)]
      guard child.reached != 0 else { return false }
      // The sums are clamped a little above the limits, so that no sum overflows.
      reached = min(reached + child.reached, limits.reached &+ 1)
      size = min(size + child.bytes, limits.expandedBytes &+ 1)
      height = max(height, child.height)
    }
    notes[object].reached = reached
    notes[object].bytes = size
    notes[object].height = height + 1
    return true
  }

  /// Checks that the keys are different strings, and leaves their measure in `lastKeys`.
  private mutating func checkKeys(of object: Int, _ head: ObjectHead) throws(PropertyListError) {
    let length = head.count * layout.referenceSize
    if head.count == lastKeys.count, bytes.same(head.start, lastKeys.start, count: length) {
      return
    }
    lastKeys = KeyRun(start: head.start, count: head.count)
    if areFewAndDistinct(head) {
      for index in 0..<head.count { count(objects.reference(index, of: head)) }
      return
    }
    let mark = UInt32(object) + 1
    for index in 0..<head.count {
      let reference = objects.reference(index, of: head)
      let key = try key(reference)
      guard notes[key].mark != mark else {
        throw PropertyListError(
          .duplicateKey, "the key '\(objects.string(objects.head(of: key)))' occurs twice",
          at: objects.offset(of: object))
      }
      notes[key].mark = mark
      count(reference)
    }
  }

  @inline(__always)
  private mutating func count(_ key: Int) {
    lastKeys.reached += 1
    lastKeys.bytes = min(lastKeys.bytes + notes[key].bytes, limits.expandedBytes &+ 1)
  }

  /// Returns whether a few keys are ASCII strings that differ in their beginnings or lengths.
  ///
  /// Headers and most values have no other keys. Hashing and comparing whole keys takes four times
  /// as long, and decides about the others.
  private func areFewAndDistinct(_ head: ObjectHead) -> Bool {
    guard head.count <= 8 else { return false }
    var signs = InlineArray<8, UInt64>(repeating: 0)
    for index in 0..<head.count {
      let key = objects.head(of: objects.reference(index, of: head))
      guard key.kind == .ascii, key.count > 0 else { return false }
      // Equal strings have equal signs.
      let sign = bytes.number(at: key.start, width: min(key.count, 8)) ^ UInt64(key.count) << 56
      for earlier in 0..<index where signs[earlier] == sign { return false }
      signs[index] = sign
    }
    return true
  }

  /// Returns the first string with the same key as `object`, which must be a string.
  private mutating func key(_ object: Int) throws(PropertyListError) -> Int {
    if notes[object].key != 0 { return Int(notes[object].key) - 1 }
    let head = objects.head(of: object)
    guard head.kind.isString else {
      throw PropertyListError(
        .unsupported, "a key that is \(head.kind.name)", at: objects.offset(of: object))
    }
    let known: UInt32?
    if head.kind == .ascii {
      known = ascii(head, object)
    } else {
      known = other(objects.string(head), object)
    }
    let key = known ?? UInt32(object)
    notes[object].key = key + 1
    return Int(key)
  }

  private mutating func ascii(_ head: ObjectHead, _ object: Int) -> UInt32? {
    let objects = objects
    let payload = objects.payload(of: head)
    return keys.find(hash: KeyTable.hash(payload.bytes), orInsert: UInt32(object)) {
      objects.isString(Int($0), payload.bytes)
    }
  }

  /// Returns the object of the same key: a string in UTF-16 can still equal a string in ASCII.
  private mutating func other(_ text: String, _ object: Int) -> UInt32? {
    guard let ascii = KeyTable.ascii(text) else {
      return keys.find(text, orInsert: UInt32(object))
    }
    let objects = objects
    return keys.find(hash: KeyTable.hash(ascii.span.bytes), orInsert: UInt32(object)) {
      objects.isString(Int($0), ascii.span.bytes)
    }
  }
}
