internal import FoundationEssentials
public import Wormhole

/// Where tickets are sold and taken back, on either side, and by any number of processes.
///
/// The books are one channel, changed under its lock: two who sell at once sell one after the
/// other, and none overwrites what the other has sold. When a call returns, its change survives a
/// power cut. Calls wait for the disk and for those who change the books at the same time, and for
/// nobody who is dead or stopped.
public struct BoxOffice: Sendable {
  /// What both sides share.
  public let channel: Wormhole.Channel<Books>
  /// The side that this one stands on, for the history.
  public let role: Role

  /// The box office in a container.
  public init(_ hole: Wormhole, as role: Role) {
    channel = hole.channel("tickets", of: Books.self)
    self.role = role
  }

  /// The books as they are now.
  public var books: Books { get throws(WormholeError) { try channel.value ?? Books() } }

  /// Sells a ticket; once this has returned it is sold for good.
  ///
  /// Throws a ``Refusal``, and then nothing has changed. An error of the container means the same,
  /// but for `notDurable`.
  @discardableResult
  public func sell(_ movie: Movie.ID, to customer: String) throws -> Ticket {
    #if FAULT_POINTS
      if let sold = try OfficeMutant.sell(movie, to: customer, by: role, in: channel) {
        return sold
      }
    #endif
    // What a former run of the body has sold is forgotten, as its books are.
    var ticket: Ticket?
    try channel.update(default: Books(), durability: .power) { books in
      ticket = try books.sell(movie, to: customer, by: role, at: Date())
    }
    return ticket!
  }

  /// Takes a ticket back; once this has returned it is nobody's any more.
  ///
  /// Throws as ``sell(_:to:)`` does.
  @discardableResult
  public func takeBack(_ movie: Movie.ID, from customer: String) throws -> Ticket {
    var ticket: Ticket?
    try channel.update(default: Books(), durability: .power) { books in
      ticket = try books.takeBack(movie, from: customer, by: role, at: Date())
    }
    return ticket!
  }
}
