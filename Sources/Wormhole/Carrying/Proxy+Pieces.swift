internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Reading messages and their files in pieces, in constant memory.
extension Proxy {
  /// The sizes of a message and its file in bytes.
  package struct Sizes: Hashable, Sendable {
    package let message: Int
    /// Nil for a message without a file, and for a file that was removed.
    package let file: Int?
  }

  /// The sizes of a waiting message; nil if the message no longer waits.
  package func sizes(of name: MessageName) throws(WormholeError) -> Sizes? {
    try naming("read message", name.id, at: home) { () throws(Errno) in
      guard let message = try home.status(of: name.text, in: .inbox) else { return nil }
      return Sizes(
        message: message.size, file: try home.status(of: name.fileName, in: .files)?.size)
    }
  }

  /// The size of a claimed message in bytes; nil if the message was settled.
  package func claimedSize(of name: MessageName) throws(WormholeError) -> Int? {
    try naming(
      "read message", name.id, at: home,
      home.status(of: ClaimedName(name, attempt: 1).text, in: .claimed)?.size)
  }

  /// Reads bytes of a message that waits or is claimed, or of its file; nil if it is gone.
  ///
  /// Returns fewer bytes at the end of the file. The receiver compares the whole with the size and
  /// checksum from the sender.
  package func read(
    _ part: MessagePart, of name: MessageName, at offset: Int, count: Int
  ) throws(WormholeError) -> [UInt8]? {
    try naming("read message", name.id, at: home) { () throws(Errno) in
      guard part == .message else {
        return try home.read(name.fileName, in: .files, at: offset, count: count)
      }
      // Only this process claims messages here, so the message cannot move in between.
      if let bytes = try home.read(name.text, in: .inbox, at: offset, count: count) {
        return bytes
      }
      let claimed = ClaimedName(name, attempt: 1).text
      return try home.read(claimed, in: .claimed, at: offset, count: count)
    }
  }
}

package enum MessagePart: String, Sendable {
  /// The file that was sent with the message.
  case file
  /// The message itself.
  case message
}
