/// A validator that checks that bytes are a binary property list within the limits.
///
/// First, each object of the table is checked on its own: inside the file, of a known kind, apart
/// from all other objects, its text well-formed. Then the containers are checked, children before
/// their parents: keys are different strings, no container contains itself, and the cost of a walk
/// from the top is computed without walking. The work is linear in the length of the file, and no
/// function recurses.
///
/// The validator is not copyable: a copy is larger than most files.
struct BinaryValidator: ~Copyable {
  let bytes: UnsafeRawBufferPointer
  let limits: PropertyListLimits
  let layout: BinaryLayout
  let objects: BinaryObjects

  /// Memory for the duration of the initializer: an array would check each access.
  let notes: UnsafeMutableBufferPointer<Note>
  var keys = KeyTable()
  /// The references of the last dictionary's keys, which the next dictionary often repeats.
  var lastKeys = KeyRun()

  /// The facts known about an object.
  struct Note: BitwiseCopyable {
    /// The number of objects that a walk from here reaches; 0 as long as it is unknown.
    var reached: Int = 0
    /// The number of bytes read by the walk.
    var bytes: Int = 0
    var height: UInt32 = 0
    /// The number of the first string with the same key, plus one.
    var key: UInt32 = 0
    /// The last dictionary with this key; for a container: whether it is being walked.
    var mark: UInt32 = 0
  }

  struct KeyRun {
    var start = 0
    var count = -1
    var reached = 0
    var bytes = 0
  }

  private init(
    _ bytes: UnsafeRawBufferPointer, _ limits: PropertyListLimits, _ layout: BinaryLayout
  ) {
    self.bytes = bytes
    self.limits = limits
    self.layout = layout
    objects = BinaryObjects(bytes: bytes, layout: layout)
    notes = .allocate(capacity: layout.count)
    notes.initialize(repeating: Note())
  }

  deinit {
    notes.deallocate()
    keys.free()
  }

  /// Returns the layout of the bytes, which are a binary property list within the limits.
  ///
  /// - Parameter isSealChecked: whether the caller has just verified the checksum.
  static func check(
    _ bytes: RawSpan, limits: PropertyListLimits, isSealChecked: Bool = false
  ) throws(PropertyListError) -> BinaryLayout {
    let layout = try layout(of: bytes, limits: limits, isSealChecked)
    try bytes.withUnsafeBytes { bytes throws(PropertyListError) in
      var validator = BinaryValidator(bytes, limits, layout)
      try validator.checkObjects()
      try validator.measureContainers()
      try validator.checkTop()
    }
    return layout
  }

  private static func layout(
    of bytes: RawSpan, limits: PropertyListLimits, _ isSealChecked: Bool
  ) throws(PropertyListError) -> BinaryLayout {
    guard bytes.byteCount <= limits.bytes else { throw .limit(.bytes, limits) }
    guard BinaryFormat.starts(bytes) else {
      throw PropertyListError(.notPropertyList, "the file does not begin with 'bplist00'", at: 0)
    }
    guard bytes.byteCount >= BinaryFormat.shortest else {
      throw PropertyListError(.malformed, "the file ends too early", at: bytes.byteCount)
    }
    let trailer = bytes.byteCount - BinaryFormat.trailerLength
    guard isSealChecked || Seal.of(bytes) != .broken else {
      throw PropertyListError(.checksum, "the checksum is wrong", at: trailer)
    }
    let offsetSize = Int(bytes[trailer + 6])
    let referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
      throw PropertyListError(
        .malformed, "offsets or references of an invalid size", at: trailer + 6)
    }
    let count = bytes.bigEndian(at: trailer + 8, width: 8)
    let top = bytes.bigEndian(at: trailer + 16, width: 8)
    let table = bytes.bigEndian(at: trailer + 24, width: 8)
    guard count <= UInt64(clamping: limits.objects) else {
      throw .limit(.objects, limits, at: trailer + 8)
    }
    guard top < count else {
      throw PropertyListError(.malformed, "the top object does not exist", at: trailer + 16)
    }
    // No overflow: the count is at most a limit, the size at most eight, and the table is inside.
    guard table > 8, table < UInt64(trailer),
      count.multipliedReportingOverflow(by: UInt64(offsetSize)).overflow == false,
      count * UInt64(offsetSize) == UInt64(trailer) - table
    else {
      throw PropertyListError(
        .malformed, "the offset table does not end where the trailer begins", at: trailer + 24)
    }
    return BinaryLayout(
      offsetSize: offsetSize, referenceSize: referenceSize, count: Int(count), top: Int(top),
      table: Int(table))
  }

  private func checkObjects() throws(PropertyListError) {
    var previousEnd = BinaryFormat.magicLength
    var isAscending = true
    for object in 0..<layout.count {
      let entry = bytes.number(
        at: layout.table + object * layout.offsetSize, width: layout.offsetSize)
      guard entry >= 8, entry < UInt64(layout.table) else {
        throw PropertyListError(
          .malformed, "an offset outside the objects", at: layout.table + object * layout.offsetSize
        )
      }
      let offset = Int(entry)
      let (head, end) = try checkedHead(at: offset)
      try checkPayload(head, at: offset)
      notes[object].bytes = end - offset
      if !head.kind.isContainer { notes[object].reached = 1 }
      if offset < previousEnd { isAscending = false }
      previousEnd = end
    }
    if !isAscending { try checkOverlaps() }
  }

  private func checkOverlaps() throws(PropertyListError) {
    let ranges = (0..<layout.count).map { object in
      let offset = objects.offset(of: object)
      return (offset, offset + notes[object].bytes)
    }.sorted { $0.0 < $1.0 }
    for (left, right) in zip(ranges, ranges.dropFirst()) where left.1 > right.0 {
      throw PropertyListError(.malformed, "two objects overlap", at: right.0)
    }
  }

  private func checkTop() throws(PropertyListError) {
    let top = notes[layout.top]
    guard top.height <= limits.depth else { throw .limit(.depth, limits) }
    let perByte = bytes.count.multipliedReportingOverflow(by: limits.reachedPerByte)
    let reached = perByte.overflow ? limits.reached : min(limits.reached, perByte.partialValue)
    guard top.reached <= reached else { throw .limit(.reached, limits) }
    guard top.bytes <= limits.expandedBytes else { throw .limit(.expandedBytes, limits) }
  }
}
