internal import CLinux
import Glibc

/// A file's first bytes as memory that outlives the process: what is stored there is in the file at
/// once, whatever happens to whoever stored it.
///
/// Only for files of fixed size that nobody else may write to: whoever cut one short would bring
/// down all who have it mapped. Each byte is stored and loaded for itself.
package final class Mapping: @unchecked Sendable {
  // The bytes are reached only through the calls below, each of which is atomic.
  private let start: UnsafeMutableRawPointer
  package let size: Int

  /// Maps the first `size` bytes, which the file must have, with room set aside on disk.
  package init(_ file: borrowing Descriptor, size: Int) throws(Errno) {
    let descriptor = file.rawValue
    let address = try perform(.mmap, on: descriptor) {
      Int(
        bitPattern: Glibc.mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))
    }
    start = UnsafeMutableRawPointer(bitPattern: address)!
    self.size = size
  }

  deinit { Glibc.munmap(start, size) }

  package subscript(offset: Int) -> UInt8 {
    get {
      precondition(0 <= offset && offset < size)
      return linux_load_byte(start + offset)
    }
    set {
      precondition(0 <= offset && offset < size)
      linux_store_byte(start + offset, newValue)
    }
  }

  package func clear(at offset: Int, count: Int) {
    precondition(0 <= offset && 0 <= count && count <= size && offset <= size - count)
    linux_clear_bytes(start + offset, count)
  }

  /// Stores bytes one after the other.
  package func store(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    precondition(0 <= offset && bytes.count <= size && offset <= size - bytes.count)
    guard let source = bytes.baseAddress else { return }
    linux_store_bytes(start + offset, source, bytes.count)
  }
}
