import Glibc

/// The three descriptors every process is born with.
///
/// Nobody here closes them.
package enum StandardStream: CInt, Sendable {
  case input = 0
  case output = 1
  case error = 2

  package func write(_ text: String) throws(Errno) {
    var text = text
    let bytes = text.withUTF8 { Array($0) }
    try write(bytes)
  }

  package func write(_ bytes: [UInt8]) throws(Errno) {
    let stream = rawValue
    var done = 0
    while done < bytes.count {
      done += try perform(.write) {
        bytes.withUnsafeBytes { Glibc.write(stream, $0.baseAddress! + done, bytes.count - done) }
      }
    }
  }

  /// Reads up to 64 KiB; nothing at the end.
  package func read() throws(Errno) -> [UInt8] {
    let stream = rawValue
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try perform(.read) {
      buffer.withUnsafeMutableBytes { Glibc.read(stream, $0.baseAddress, $0.count) }
    }
    return Array(buffer[..<count])
  }

  /// Whether a person looks at it.
  package var isTerminal: Bool { isatty(rawValue) == 1 }
}

extension StandardStream {
  /// Sees to it that what is opened next gets none of the three numbers: where one was closed, it
  /// would be taken for standard input or output.
  ///
  /// Reading from, or writing to, what was closed fails as before.
  package static func keepNumbers() {
    for number in CInt(0)...2 where fcntl(number, F_GETFD) == -1 {
      // The lowest free number is given, so it is this one.
      _ = Glibc.open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Waits until nobody holds the other end of the pipe any more; for a file, for ever.
  package func waitUntilBroken() throws(Errno) {
    // Nothing is asked for: the kernel tells of errors and of hang-ups all the same.
    var entry = pollfd(fd: rawValue, events: 0, revents: 0)
    _ = try perform(.poll) { Glibc.poll(&entry, 1, -1) }
  }
}
