public import Wormhole

/// What one side tells the other: that it wants images, and images.
///
/// Tickets are not told. Both sides look at the same books, so that there is no list which one
/// could put in the place of the other's.
public final class Connectivity: Sendable {
  /// The other side.
  public let peer: Wormhole.Peer
  /// Present where this is an app; a command that is over in a moment does not join.
  public let member: Wormhole.Member?

  /// Joins as one of the sides.
  ///
  /// Throws `nameTaken` if its app runs already.
  public init(joining hole: Wormhole, as role: Role) throws(WormholeError) {
    let member = try hole.join(as: role.rawValue)
    self.member = member
    peer = member.peer(role.peer.rawValue)
  }

  /// Speaks for one of the sides without being its app.
  public init(visiting hole: Wormhole, as role: Role) {
    member = nil
    peer = hole.peer(role.peer.rawValue, from: role.rawValue)
  }

  /// Tells the other side something; blocks the calling thread.
  ///
  /// - Returns: the other side's reply, where the delivery has one.
  @discardableResult
  public func send(_ payload: Payload, by delivery: Delivery) throws(WormholeError) -> Reply? {
    switch delivery {
    case .failable:
      return try peer.request(payload, as: Reply.self, waking: true)
    case .guaranteed:
      try peer.send(payload)
    case .highPriority:
      // The same once more is something that was said twice, and heard twice.
      _ = try peer.setContext(payload, evenIfSame: true)
    }
    return nil
  }

  /// Sends an image; the file stays where it is.
  public func send(image path: String, of movie: Movie.ID) throws(WormholeError) {
    try peer.send(file: path, metadata: ImageNote(qrCodes: movie))
  }

  /// The images that were asked for, and not sent or given up yet, in this life or an earlier one.
  public var asked: Set<Movie.ID> {
    get throws(WormholeError) {
      Set(try peer.outstanding.flatMap { (try? $0.value(as: Payload.self))?.qrCodes ?? [] })
    }
  }
}
