/// A part of a file that is written in place: the next process reads every stored byte, whatever
/// happens to the process that stored it.
///
/// The file is not mapped: if a process truncates a mapped file, the next process that accesses the
/// mapping crashes. A byte that cannot be stored is skipped, for example when the disk is full and
/// the file has been truncated.
package final class FilePage: Sendable {
  private let file: Descriptor
  private let start: Int
  package let size: Int

  /// - Parameter offset: the position in the file where the page begins.
  package init(_ file: borrowing Descriptor, at offset: Int = 0, size: Int) throws(Errno) {
    self.file = try file.duplicate()
    start = offset
    self.size = size
  }

  package func store(_ byte: UInt8, at offset: Int) {
    store(CollectionOfOne(byte).span.bytes, at: offset)
  }

  package func store(_ bytes: RawSpan, at offset: Int) {
    precondition(0 <= offset && bytes.byteCount <= size && offset <= size - bytes.byteCount)
    try? file.writeFully(bytes, at: start + offset)
  }
}
