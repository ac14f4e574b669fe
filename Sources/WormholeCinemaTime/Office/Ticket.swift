public import FoundationEssentials

/// A ticket: its film, its owner, and its history.
public struct Ticket: Codable, Hashable, Identifiable, Sendable {
  /// The film's number and a number that is unique among tickets, as in `34340-12`.
  public let id: String
  /// The film's number.
  public let movie: Movie.ID
  /// The owner of the ticket.
  public let customer: String
  /// The actions on the ticket, the first one first.
  public internal(set) var history: [Event]

  /// One action on a ticket.
  public struct Event: Codable, Hashable, Sendable {
    /// The kind of the action.
    public let action: Action
    /// The side on which the action took place.
    public let role: Role
    /// The time of the action, by the clock of that side.
    public let date: Date
  }

  /// An action that is possible on a ticket.
  public enum Action: String, Codable, Hashable, Sendable {
    /// The customer bought the ticket.
    case bought
    /// The customer returned the ticket, which is no longer valid.
    case returned
  }
}

/// One of the two sides.
public enum Role: String, Codable, CaseIterable, Hashable, Sendable {
  /// The side that makes the images of tickets.
  case phone
  /// The side that requests images from the phone.
  case watch

  /// The opposite side.
  public var peer: Role { self == .phone ? .watch : .phone }
}
