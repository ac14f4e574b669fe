internal import FoundationEssentials
public import Wormhole

/// The office that sells tickets and takes tickets back, on either side, and in any number of
/// processes.
///
/// The books are one channel, which is changed under its lock: two sellers at the same moment sell
/// one after the other, and neither overwrites the other's sale. When a call returns, its change
/// survives a power cut. Calls wait for the disk and for processes that change the books at the
/// same time, but not for dead or suspended processes.
public struct BoxOffice: Sendable {
  /// The channel with the books that both sides share.
  public let channel: Channel<Books>
  /// The side of this office, for the history.
  public let role: Role

  /// Makes the box office of a container.
  public init(_ container: SharedContainer, as role: Role) {
    channel = container.channel("tickets", of: Books.self)
    self.role = role
  }

  /// The books as they are now.
  public var books: Books { get throws(WormholeError) { try channel.value ?? Books() } }

  /// Sells a ticket; when the call returns, the sale is permanent.
  ///
  /// Throws a ``Refusal``; the books are then unchanged. An error of the container means the same,
  /// except `notDurable`.
  @discardableResult
  public func sell(_ movie: Movie.ID, to customer: String) throws -> Ticket {
    #if FAULT_POINTS
      if let sold = try OfficeMutant.sell(movie, to: customer, by: role, in: channel) {
        return sold
      }
    #endif
    // Each run of the body starts with fresh books and replaces the ticket of the run before.
    var ticket: Ticket?
    try channel.update(default: Books(), durability: .power) { books in
      ticket = try books.sell(movie, to: customer, by: role, at: Date())
    }
    return ticket!
  }

  /// Takes a ticket back; when the call returns, the ticket no longer has an owner.
  ///
  /// Throws the same errors as ``sell(_:to:)``.
  @discardableResult
  public func takeBack(_ movie: Movie.ID, from customer: String) throws -> Ticket {
    var ticket: Ticket?
    try channel.update(default: Books(), durability: .power) { books in
      ticket = try books.takeBack(movie, from: customer, by: role, at: Date())
    }
    return ticket!
  }
}
