import WormholeLibC
import Synchronization
internal import WormholeCLinux

/// The two ends of a pipe, both closed on exec.
package struct Pipe: ~Copyable, Sendable {
  package let reading: Descriptor
  package let writing: Descriptor

  package init() throws(Errno) {
    var ends: [CInt] = [-1, -1]
    _ = try perform(.pipe) { linux_pipe(&ends) }
    reading = Descriptor(adopting: ends[0])
    writing = Descriptor(adopting: ends[1])
  }
}

/// A pipe whose two ends are managed by two threads, and closed one after the other.
///
/// Only one thread at a time uses each end.
package final class SharedPipe: Sendable {
  private struct Ends: ~Copyable {
    var reading: Descriptor?
    var writing: Descriptor?
  }

  /// The number of this end, to pass to a child; valid only until the end is closed.
  package let reading: CInt
  package let writing: CInt
  private let ends: Mutex<Ends>

  package init() throws(Errno) {
    let pipe = try Pipe()
    (reading, writing) = (pipe.reading.rawValue, pipe.writing.rawValue)
    ends = Mutex(Ends(reading: pipe.reading, writing: pipe.writing))
  }

  package func closeReading() { ends.withLock { $0.reading = nil } }
  package func closeWriting() { ends.withLock { $0.writing = nil } }

  /// Writes all the bytes, and closes the writing end.
  package func feed(_ bytes: [UInt8]) throws(Errno) {
    defer { closeWriting() }
    try write(bytes)
  }

  /// Writes all the bytes; while the pipe is full, waits for the reader.
  package func write(_ bytes: [UInt8]) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let (writing, rest) = (writing, done)
      let count = shortened(.write, writing, bytes.count - rest)
      done += try perform(.write, on: writing) {
        bytes.span.bytes.extracting(rest...).withUnsafeBytes {
          WormholeLibC.write(writing, $0.baseAddress, count)
        }
      }
    }
  }

  /// Reads until all writing ends are closed, or the bytes exceed the limit.
  package func collect(limit: Int) throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= limit {
      let reading = reading
      let count = try perform(.read, on: reading) {
        buffer.withUnsafeMutableBytes { WormholeLibC.read(reading, $0.baseAddress, $0.count) }
      }
      if count == 0 { break }
      bytes += buffer[..<count]
    }
    return bytes
  }
}
