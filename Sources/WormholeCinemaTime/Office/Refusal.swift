/// The reason why a ticket is not sold, or not taken back.
///
/// After a refusal the books are unchanged.
public enum Refusal: Error, Hashable, Sendable {
  /// No film has the number.
  case unknownMovie(String)
  /// The customer already has a ticket for the film.
  case alreadySold(Movie, Ticket)
  /// The customer has no ticket for the film.
  case notSold(Movie, String)
  /// All seats are sold.
  case soldOut(Movie)
  /// A customer's name is empty, or longer than ``Books/longestName``.
  case invalidCustomer(String)

  /// A constant identifier of the reason, for programs.
  public var code: String {
    switch self {
    case .unknownMovie: "unknownMovie"
    case .alreadySold: "alreadySold"
    case .notSold: "notSold"
    case .soldOut: "soldOut"
    case .invalidCustomer: "invalidCustomer"
    }
  }
}

extension Refusal: CustomStringConvertible {
  /// One sentence, without a full stop.
  public var description: String {
    switch self {
    case .unknownMovie(let word):
      "cannot find film '\(word)': no film has this number; list the films with "
        + "'cinematime list'"
    case .alreadySold(let movie, let ticket):
      "cannot buy '\(movie.title)': ticket \(ticket.id) of '\(ticket.customer)' is for the same "
        + "film; return the ticket first"
    case .notSold(let movie, let customer):
      "cannot return '\(movie.title)': '\(customer)' has no ticket for the film"
    case .soldOut(let movie):
      "cannot buy '\(movie.title)': all \(movie.seats) seats are sold; try again when one was "
        + "returned"
    case .invalidCustomer(let name):
      "cannot sell to '\(name.prefix(Books.longestName))': a name has 1 to \(Books.longestName) "
        + "bytes"
    }
  }
}
