public import Wormhole

/// The messages between the two sides: requests for images, and images.
///
/// Tickets are not sent. Both sides read the same books, so neither side has a list that could
/// overwrite the list of the other.
public final class Connectivity: Sendable {
  /// The other side.
  public let peer: Peer
  /// The member of an app; nil for a command, which ends too soon to join.
  public let member: Member?

  /// Joins as one of the sides.
  ///
  /// Throws `nameTaken` if the side's app already runs.
  public init(joining container: SharedContainer, as role: Role) throws(WormholeError) {
    let member = try container.join(as: role.rawValue)
    self.member = member
    peer = member.peer(role.peer.rawValue)
  }

  /// Sends as one of the sides without being its app.
  public init(visiting container: SharedContainer, as role: Role) {
    member = nil
    peer = container.peer(role.peer.rawValue, from: role.rawValue)
  }

  /// Sends a payload to the other side; blocks the calling thread.
  ///
  /// - Returns: the reply of the other side, if the delivery has replies.
  @discardableResult
  public func send(_ payload: Payload, by delivery: Delivery) throws(WormholeError) -> Reply? {
    switch delivery {
    case .failable:
      return try peer.request(payload, as: Reply.self, waking: true)
    case .guaranteed:
      try peer.send(payload)
    case .highPriority:
      // Sending an equal value again is a second message, and is delivered twice.
      _ = try peer.setContext(payload, evenIfSame: true)
    }
    return nil
  }

  /// Sends an image; the file remains at its path.
  public func send(image path: String, of movie: Movie.ID) throws(WormholeError) {
    try peer.send(file: path, metadata: ImageNote(qrCodes: movie))
  }

  /// The images that this run or an earlier run has requested, and that are neither sent nor
  /// dead-lettered.
  public var asked: Set<Movie.ID> {
    get throws(WormholeError) {
      Set(try peer.pendingMessages.flatMap { (try? $0.value(as: Payload.self))?.qrCodes ?? [] })
    }
  }
}
