extension BinaryPropertyList {
  /// Returns the file that the writer would make with other values of a few leaves; nil if all
  /// values have to be written.
  ///
  /// The writer gives each value an object of its own, and writes the objects in the order of their
  /// numbers. Another leaf therefore only moves the objects behind it. Copying the file takes a
  /// fraction of the time of writing each key again.
  ///
  /// - Parameters:
  ///   - leaves: the new values, by the keys from the top to each value.
  ///   - file: a file that this module has written, within the same limits, and that has stayed in
  ///     the memory of the process: its bytes are not validated.
  package static func replacing(
    _ leaves: [(path: [String], value: PropertyListValue)], in file: [UInt8],
    limits: PropertyListLimits = .default
  ) -> [UInt8]? {
    let made = file.withUnsafeBytes { bytes -> [UInt8]? in
      guard let objects = BinaryObjects(trusting: bytes) else { return nil }
      var replacement = LeafReplacement(objects)
      for leaf in leaves {
        guard replacement.add(leaf.path, leaf.value) else { return nil }
      }
      return replacement.finish()
    }
    // Only keys are shared, and each use of a key takes two references in the file: repeated for
    // each use, the keys take less than this.
    guard let made, made.count <= limits.bytes,
      made.count * made.count / 2 <= limits.expandedBytes
    else { return nil }
    return made
  }
}

/// The making of a copy in which a few leaves differ.
private struct LeafReplacement {
  private let objects: BinaryObjects
  /// The writer of the new leaves, which are copied from there.
  private let writer = BinaryWriter(limits: .default)
  /// The numbers of the old leaves, in the order of the file, and of the new leaves.
  private var changes: [(old: Int, new: UInt32)] = []

  init(_ objects: BinaryObjects) { self.objects = objects }

  /// - Returns: false if the file has no leaf at the path, or the value is not a leaf.
  mutating func add(_ path: [String], _ value: PropertyListValue) -> Bool {
    guard let old = objects.leaf(at: path), let new = writer.addLeaf(value) else { return false }
    let place = changes.firstIndex { $0.old > old } ?? changes.count
    changes.insert((old, new), at: place)
    return true
  }

  /// Returns the copy; nil if its offsets have another width.
  func finish() -> [UInt8]? {
    let layout = objects.layout
    let growth = changes.reduce(0) { $0 + self.growth(of: $1) }
    guard BinaryWriter.width(of: layout.table + growth) == layout.offsetSize else { return nil }
    var file: [UInt8] = []
    file.reserveCapacity(objects.bytes.count + growth)
    appendObjects(to: &file)
    appendOffsets(to: &file)
    appendTrailer(to: &file, table: layout.table + growth)
    return file
  }

  private func growth(of change: (old: Int, new: UInt32)) -> Int {
    writer.size(of: change.new) - objects.size(of: change.old)
  }

  private func appendObjects(to file: inout [UInt8]) {
    var copied = 0
    for change in changes {
      let start = objects.offset(of: change.old)
      append(objects.bytes.bytes, copied..<start, to: &file)
      let leaf = writer.offsets[Int(change.new)]
      append(writer.bytes.raw.bytes, leaf..<leaf + writer.size(of: change.new), to: &file)
      copied = start + objects.size(of: change.old)
    }
    append(objects.bytes.bytes, copied..<objects.layout.table, to: &file)
  }

  private func appendOffsets(to file: inout [UInt8]) {
    var (shift, next) = (0, 0)
    for object in 0..<objects.layout.count {
      append(objects.offset(of: object) + shift, width: objects.layout.offsetSize, to: &file)
      guard next < changes.count, changes[next].old == object else { continue }
      shift += growth(of: changes[next])
      next += 1
    }
  }

  private func appendTrailer(to file: inout [UInt8], table: Int) {
    let (start, end) = (file.count, objects.bytes.count)
    append(objects.bytes.bytes, end - BinaryFormat.trailerLength..<end - 8, to: &file)
    append(table, width: 8, to: &file)
    let seal = Seal.make(for: file.span.bytes)
    for index in 0..<Seal.length {
      file[start + index] = UInt8(truncatingIfNeeded: seal >> (40 - 8 * index))
    }
  }

  private func append(_ bytes: RawSpan, _ range: Range<Int>, to file: inout [UInt8]) {
    bytes.extracting(range).withUnsafeBytes { file.append(contentsOf: $0) }
  }

  /// Appends a number big-endian.
  private func append(_ number: Int, width: Int, to file: inout [UInt8]) {
    for index in (0..<width).reversed() {
      file.append(UInt8(truncatingIfNeeded: number >> (8 * index)))
    }
  }
}

extension BinaryObjects {
  /// Reads the positions in a file that this module has written; nil if the bytes are not a file.
  fileprivate init?(trusting bytes: UnsafeRawBufferPointer) {
    let end = bytes.count
    guard end >= BinaryFormat.shortest, BinaryFormat.starts(bytes.bytes) else { return nil }
    let numbers = [24, 16, 8].map { Int(truncatingIfNeeded: bytes.number(at: end - $0, width: 8)) }
    self.init(
      bytes: bytes,
      layout: BinaryLayout(
        offsetSize: Int(bytes[end - 26]), referenceSize: Int(bytes[end - 25]), count: numbers[0],
        top: numbers[1], table: numbers[2]))
  }

  /// Returns the leaf that the keys lead to from the top; nil if there is none.
  fileprivate func leaf(at path: [String]) -> Int? {
    var object = layout.top
    for key in path {
      let head = head(of: object)
      guard head.kind == .dictionary, let index = index(of: key, in: head) else { return nil }
      object = reference(head.count + index, of: head)
    }
    return kind(of: object).isContainer ? nil : object
  }

  private func index(of key: String, in head: ObjectHead) -> Int? {
    let text = key.utf8.span.bytes
    return (0..<head.count).first { isString(reference($0, of: head), text) }
  }

  /// Returns the size of an object in bytes, including its head.
  fileprivate func size(of object: Int) -> Int {
    let head = head(of: object)
    return head.start + head.length(referenceSize: layout.referenceSize) - offset(of: object)
  }
}
