/// The progress of a file transfer.
public struct FileProgress: Hashable, Sendable {
  /// The last path component of the file, or its name in the container.
  public let name: String
  /// The bytes transferred so far.
  public let done: Int
  /// The bytes of the whole file.
  public let total: Int

  /// From 0 to 1.
  public var fraction: Double { total == 0 ? 1 : Double(done) / Double(total) }
}

/// The decision of a progress closure.
@nonexhaustive
public enum ProgressDecision: Hashable, Sendable {
  /// Continue the transfer.
  case `continue`
  /// End the call with ``WormholeError/Code-swift.struct/cancelled``; nothing is sent then.
  case cancel
}

/// The treatment of the sender's file.
@nonexhaustive
public enum TransferMode: Hashable, Sendable {
  /// The file stays; the message receives a copy of the content at the moment of the call.
  case copying
  /// The file no longer exists when the call returns: it was moved, or copied and removed where
  /// it could not be moved.
  ///
  /// No process may have the file open for writing. The file's name is removed after the message
  /// has reached the peer's inbox, so a sender that dies earlier loses nothing.
  case moving
}
