internal import PropertyLists
package import Syscalls

/// Goes through a file once, in constant memory: sums it up, and copies it if asked.
///
/// What is copied passes through a buffer that stays in the processor's cache, so that the sum
/// costs next to nothing there; copying within the kernel and reading again is no faster. Holes are
/// neither read nor written, and count as the zeros that they read as.
package enum FileCopy {
  /// Why it was not gone through to the end.
  package enum Failure: Error, Hashable, Sendable {
    case system(Errno)
    /// It has become shorter than it was at the beginning.
    case shrank(to: Int)
    case cancelled
  }

  /// Is told how far it has come; whether to go on.
  package typealias Report = (_ done: Int) -> Bool

  private static let step = 256 << 10
  /// How much comes between two reports.
  private static let stride = 8 << 20

  /// The checksum of the first bytes of a file.
  package static func checksum(
    of file: borrowing Descriptor, size: Int, _ report: Report
  ) throws(Failure) -> UInt32 {
    try walk(file, size, report) { _, _ in }
  }

  /// Makes an empty file the copy of the first bytes of another; answers their checksum.
  ///
  /// What is appended to the source meanwhile does not come along.
  package static func copy(
    _ source: borrowing Descriptor, to target: borrowing Descriptor, size: Int, _ report: Report
  ) throws(Failure) -> UInt32 {
    if size > 0, (try? target.clone(from: source)) != nil {
      try system { () throws(Errno) in try target.truncate(to: size) }
      return try walk(target, size, report) { _, _ in }
    }
    let number = target.rawValue
    var end = 0
    let sum = try walk(source, size, report) { bytes, offset throws(Errno) in
      // Kept open by the borrowed descriptor.
      try Descriptor.writeFully(bytes, at: offset, toOpen: number)
      end = offset + bytes.count
    }
    if end < size { try system { () throws(Errno) in try target.truncate(to: size) } }
    return sum
  }

  private static func walk(
    _ file: borrowing Descriptor, _ size: Int, _ report: Report,
    _ body: (UnsafeRawBufferPointer, _ offset: Int) throws(Errno) -> Void
  ) throws(Failure) -> UInt32 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, min(step, size)), alignment: 4096)
    defer { buffer.deallocate() }
    var (sum, offset, reported) = (Checksum(), 0, 0)
    while offset < size {
      let data: Int
      let hole: Int
      do throws(Errno) {
        data = min(size, max(offset, try file.nextData(from: offset) ?? size))
        hole = min(size, data < size ? try file.nextHole(from: data) ?? size : size)
      } catch {
        throw .system(error)
      }
      sum.addZeros(data - offset)
      offset = data
      while offset < hole {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(step, hole - offset)])
        var count = 0
        do throws(Errno) {
          count = try file.readFully(into: part, at: offset)
          let read = UnsafeRawBufferPointer(rebasing: part[..<count])
          sum.add(read)
          if count == part.count { try body(read, offset) }
        } catch {
          throw .system(error)
        }
        offset += count
        guard count == part.count else { throw .shrank(to: offset) }
        guard offset - reported >= stride, offset < size else { continue }
        reported = offset
        guard report(offset) else { throw .cancelled }
      }
    }
    // What was cut off reads as a hole.
    var now = 0
    try system { () throws(Errno) in now = try file.status().size }
    guard now >= size else { throw .shrank(to: now) }
    guard report(size) else { throw .cancelled }
    return sum.value
  }

  private static func system(_ body: () throws(Errno) -> Void) throws(Failure) {
    if let error = Errno.of(body) { throw .system(error) }
  }
}
