import WormholeLibC

/// The three descriptors that every process starts with.
///
/// This package never closes the three descriptors.
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
      let position = done
      done += try whenReady { () throws(Errno) in
        try perform(.write) {
          bytes.span.bytes.extracting(position...).withUnsafeBytes {
            WormholeLibC.write(stream, $0.baseAddress, $0.count)
          }
        }
      }
    }
  }

  /// Reads up to 64 KiB; returns no bytes at the end.
  package func read() throws(Errno) -> [UInt8] {
    let stream = rawValue
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = try whenReady { () throws(Errno) in
      try perform(.read) {
        buffer.withUnsafeMutableBytes { WormholeLibC.read(stream, $0.baseAddress, $0.count) }
      }
    }
    return Array(buffer[..<count])
  }

  /// Makes a call, and waits each time that the stream is not ready for the call.
  ///
  /// Streams usually wait themselves, but this is a property of the open file: another program that
  /// has the same terminal or pipe may have changed it. Standard error is not waited for: a log
  /// entry that cannot be written at once is lost.
  private func whenReady(_ call: () throws(Errno) -> Int) throws(Errno) -> Int {
    while true {
      do throws(Errno) {
        return try call()
      } catch {
        guard error == .wouldBlock, self != .error else { throw error }
        var awaited = [WaitEntry(rawValue, reads: self == .input, writes: self == .output)]
        try WaitEntry.wait(for: &awaited, until: nil)
      }
    }
  }

  /// Whether the stream is a terminal, read by a person.
  package var isTerminal: Bool { isatty(rawValue) == 1 }
}

extension StandardStream {
  /// Makes sure that the next opened files get none of the three numbers: a file with the number of
  /// a closed stream would be taken for standard input or output.
  ///
  /// Reading from, or writing to, a closed stream fails as before.
  package static func keepNumbers() {
    for number in CInt(0)...2 where fcntl(number, F_GETFD) == -1 {
      // The kernel gives the lowest free number, so the file gets this number.
      _ = WormholeLibC.open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// Waits until no process holds the other end of the pipe; for a file, waits forever.
  package func waitUntilBroken() throws(Errno) {
    // No event is requested: the kernel reports errors and hang-ups regardless.
    var entry = pollfd(fd: rawValue, events: 0, revents: 0)
    _ = try perform(.poll) { WormholeLibC.poll(&entry, 1, -1) }
  }
}
