public import FoundationEssentials

/// A ticket: which film, whose, and what has been done with it.
public struct Ticket: Codable, Hashable, Identifiable, Sendable {
  /// The film's number and a number that no other ticket has, as in `34340-12`.
  public let id: String
  /// The film's number.
  public let movie: Movie.ID
  /// Whose it is.
  public let customer: String
  /// What was done with it, the first thing first.
  public internal(set) var history: [Deed]

  /// Something that was done with a ticket.
  public struct Deed: Codable, Hashable, Sendable {
    /// What was done.
    public let action: Action
    /// On which side.
    public let role: Role
    /// When, by the clock of that side.
    public let date: Date
  }

  /// What can be done with a ticket.
  public enum Action: String, Codable, Hashable, Sendable {
    /// The customer got it.
    case bought
    /// The customer gave it back; it is of no use any more.
    case returned
  }
}

/// One of the two sides.
public enum Role: String, Codable, CaseIterable, Hashable, Sendable {
  /// It makes the images of tickets.
  case phone
  /// It asks the phone for them.
  case watch

  /// The other one.
  public var peer: Role { self == .phone ? .watch : .phone }
}
