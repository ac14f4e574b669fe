/// A part of a file that is written in place: what is stored there is there for the next process,
/// whatever happens to whoever stored it.
///
/// It is not mapped: whoever cuts a mapped file short brings down the process that touches it next.
/// What cannot be stored, as when the disk is full and the file has been cut, is left out.
package final class FilePage: Sendable {
  private let file: Descriptor
  private let start: Int
  package let size: Int

  /// - Parameter offset: where it begins.
  package init(_ file: borrowing Descriptor, at offset: Int = 0, size: Int) throws(Errno) {
    self.file = try file.duplicate()
    start = offset
    self.size = size
  }

  package func store(_ byte: UInt8, at offset: Int) {
    withUnsafeBytes(of: byte) { store($0, at: offset) }
  }

  package func store(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    precondition(0 <= offset && bytes.count <= size && offset <= size - bytes.count)
    try? file.writeFully(bytes, at: start + offset)
  }
}
