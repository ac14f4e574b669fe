extension Wormhole {
  /// How far a file has come.
  public struct FileProgress: Hashable, Sendable {
    /// Its last path component, or what it is called in the container.
    public let name: String
    /// The bytes that are done.
    public let done: Int
    /// The bytes that there are.
    public let total: Int

    /// From 0 to 1.
    public var fraction: Double { total == 0 ? 1 : Double(done) / Double(total) }
  }

  /// What who watches the progress of a file makes of it.
  @nonexhaustive
  public enum FileDecision: Hashable, Sendable {
    /// Go on.
    case goOn
    /// End the call with ``WormholeError/Code-swift.struct/cancelled``; nothing is sent then.
    case cancel
  }

  /// What becomes of the file that is sent.
  @nonexhaustive
  public enum FileHanding: Hashable, Sendable {
    /// It stays, and what is sent is a copy of what it holds at that moment.
    case copying
    /// It is gone when the call returns: moved where that can be, copied and removed elsewhere.
    ///
    /// Nobody may have it open for writing. Its name is removed once the message is in the peer's
    /// inbox, so whoever dies before loses nothing.
    case moving
  }
}
