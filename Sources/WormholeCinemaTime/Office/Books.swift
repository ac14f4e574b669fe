public import FoundationEssentials

/// All tickets: the value that both sides share, and change only as a whole.
///
/// The value knows the rules; ``BoxOffice`` serializes the changes.
public struct Books: Codable, Hashable, Sendable {
  /// The valid tickets, the oldest first.
  public private(set) var tickets: [Ticket] = []
  /// The tickets that were returned last, ``mostReturned`` at most.
  public private(set) var returned: [Ticket] = []
  /// The number of tickets ever sold.
  public private(set) var sold = 0
  /// The number of tickets ever taken back.
  public private(set) var takenBack = 0

  /// The maximum number of returned tickets that are stored, with their history.
  public static let mostReturned = 50
  /// The maximum length of a customer's name, in bytes.
  public static let longestName = 100

  /// The highest number of tickets: a higher one could not be counted further.
  private static let highest = Int.max - 1

  /// Books without any entry.
  public init() {}

  /// Throws for numbers that leave no room for further counting: any program with write access to
  /// the container may have written any number.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    func number(_ key: CodingKeys) throws -> Int {
      let number = try values.decode(Int.self, forKey: key)
      guard (0...Self.highest).contains(number) else {
        throw DecodingError.dataCorruptedError(
          forKey: key, in: values, debugDescription: "\(number) is not a number of tickets")
      }
      return number
    }
    tickets = try values.decode([Ticket].self, forKey: .tickets)
    returned = try values.decode([Ticket].self, forKey: .returned)
    sold = try number(.sold)
    takenBack = try number(.takenBack)
  }

  /// Whether the number of sold tickets, minus the number taken back, is the number of valid
  /// tickets, with no film sold beyond its seats, and no customer with two tickets for the same
  /// film.
  public var addUp: Bool {
    sold - takenBack == tickets.count
      && Set(tickets.map(\.id)).count == tickets.count
      && Movie.all.allSatisfy { movie in
        let owners = tickets(for: movie.id).map(\.customer)
        return owners.count <= movie.seats && Set(owners).count == owners.count
      }
  }

  /// The valid tickets of a film.
  public func tickets(for movie: Movie.ID) -> [Ticket] { tickets.filter { $0.movie == movie } }

  /// The valid tickets of a customer.
  public func tickets(of customer: String) -> [Ticket] {
    tickets.filter { $0.customer == customer }
  }

  /// The customer's ticket for a film; nil if there is none.
  public func ticket(for movie: Movie.ID, of customer: String) -> Ticket? {
    tickets.first { $0.movie == movie && $0.customer == customer }
  }

  /// The number of unsold seats of a film.
  public func seatsLeft(for movie: Movie) -> Int {
    max(0, movie.seats - tickets(for: movie.id).count)
  }

  /// All actions, the first one first: for all valid tickets, and for the tickets that were
  /// returned last.
  public var history: [(ticket: Ticket, deed: Ticket.Event)] {
    (returned + tickets).flatMap { ticket in ticket.history.map { (ticket, $0) } }
      .sorted { $0.deed.date < $1.deed.date }
  }

  // MARK: Changes

  /// Sells a ticket.
  ///
  /// Throws if no film has the number, the customer has a ticket for the film, or all seats are
  /// sold.
  public mutating func sell(
    _ id: Movie.ID, to customer: String, by role: Role, at date: Date
  ) throws(Refusal) -> Ticket {
    guard let movie = Movie.find(id) else { throw .unknownMovie("\(id)") }
    guard !customer.isEmpty, customer.utf8.count <= Self.longestName else {
      throw .invalidCustomer(customer)
    }
    if let ticket = ticket(for: id, of: customer) { throw .alreadySold(movie, ticket) }
    guard seatsLeft(for: movie) > 0, sold < Self.highest else { throw .soldOut(movie) }
    sold += 1
    let deed = Ticket.Event(action: .bought, role: role, date: date)
    let ticket = Ticket(id: "\(id)-\(sold)", movie: id, customer: customer, history: [deed])
    tickets.append(ticket)
    return ticket
  }

  /// Takes a ticket back.
  ///
  /// Throws if no film has the number, or the customer has no ticket for the film.
  public mutating func takeBack(
    _ id: Movie.ID, from customer: String, by role: Role, at date: Date
  ) throws(Refusal) -> Ticket {
    guard let movie = Movie.find(id) else { throw .unknownMovie("\(id)") }
    guard let place = tickets.firstIndex(where: { $0.movie == id && $0.customer == customer })
    else { throw .notSold(movie, customer) }
    var ticket = tickets.remove(at: place)
    takenBack = min(takenBack + 1, Self.highest)
    ticket.history.append(Ticket.Event(action: .returned, role: role, date: date))
    returned.append(ticket)
    returned.removeFirst(max(0, returned.count - Self.mostReturned))
    return ticket
  }
}
