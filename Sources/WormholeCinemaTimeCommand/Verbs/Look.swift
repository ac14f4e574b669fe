import WormholeCinemaTime
import WormholeCommandLine
import WormholePropertyLists

extension Verb {
  static let list = Verb(
    "list", "list the films by time", [], [.sample],
    [
      "Writes a line for each film, separated by tabs: number, time, title, number of free "
        + "seats, and the number of NAME's ticket, or a dash. With --json, writes one object per "
        + "line.",
      "With --sample, prints the side's own list, which may differ from the list of the other "
        + "side. The sample does not count seats, so the column contains a dash.",
    ],
    [Example("cinematime --as phone list", "all films")]
  ) { invocation in
    if invocation.has(.sample) { return try invocation.listSample() }
    let books = try invocation.books()
    return try invocation.listMovies { movie in
      books.ticket(for: movie.id, of: invocation.customer)?.id
    } seatsLeft: { movie in
      books.seatsLeft(for: movie)
    }
  }

  static let tickets = Verb(
    "tickets", "list the tickets", [], [.everybody, .sample],
    [
      "Writes a line for each ticket of NAME, separated by tabs: number, time and title. With "
        + "--everybody, lists the tickets of all customers, with the customer at the end of the "
        + "line. With --json, writes one object per line.",
      "With --sample, lists the tickets in the side's own list, which may differ from the list "
        + "of the other side. The number of such a ticket is the number of its film.",
    ],
    [
      Example("cinematime --as watch tickets", "the tickets on the watch"),
      Example("cinematime --as watch tickets --sample", "the tickets in the watch's own list"),
    ],
    action: "list the tickets"
  ) { invocation in
    if invocation.has(.sample) { return try invocation.ticketsOfSample() }
    let books = try invocation.books()
    let isAll = invocation.has(.everybody)
    return try invocation.listTickets(
      isAll ? books.tickets : books.tickets(of: invocation.customer), withCustomer: isAll)
  }

  static let history = Verb(
    "history", "print the purchases and returns", [], [.sample],
    [
      "Writes a line for each purchase and return, in order of time, separated by tabs: time, "
        + "side, action, ticket number, customer, and film. Of the returned tickets, lists the "
        + "last \(Books.mostReturned). With --json, writes one object per line.",
      "Not with --sample, which stores the current tickets without their history.",
    ],
    [Example("cinematime --as phone history", "all purchases and returns")],
    action: "print the history"
  ) { invocation in
    try invocation.refuseSample("the sample stores no history")
    for (ticket, deed) in try invocation.books().history {
      guard invocation.output.isJSON else {
        let words = [
          DateText.format(deed.date) ?? "-", deed.role.rawValue, deed.action.rawValue, ticket.id,
          try ticket.customer.inOneLine(), ticket.film?.title ?? "-",
        ]
        try invocation.output.write(line: words.joined(separator: "\t"))
        continue
      }
      try invocation.output.write(ticket.object.merging(deed.object) { $1 })
    }
    return 0
  }
}

extension Invocation {
  /// Writes the films by time, each with its free seats, where seats are counted, and its ticket.
  func listMovies(
    ticket: (Movie) -> Ticket.ID?, seatsLeft: (Movie) -> Int?
  ) throws -> Int32 {
    for movie in Showing.groups(of: Movie.all).flatMap(\.movies) {
      let (ticket, left) = (ticket(movie), seatsLeft(movie))
      guard output.isJSON else {
        let words = [
          "\(movie.id)", movie.time, movie.title, left.map { "\($0)" } ?? "-", ticket ?? "-",
        ]
        try output.write(line: words.joined(separator: "\t"))
        continue
      }
      var object: [String: PropertyListValue] = [
        "movie": .integer(Int64(movie.id)), "time": .string(movie.time),
        "title": .string(movie.title), "seats": .integer(Int64(movie.seats)),
      ]
      object["seatsLeft"] = left.map { .integer(Int64($0)) }
      object["ticket"] = ticket.map { .string($0) }
      try output.write(object)
    }
    return 0
  }

  func listTickets(_ tickets: [Ticket], withCustomer isNamed: Bool = false) throws -> Int32 {
    for ticket in tickets {
      guard !output.isJSON else {
        try output.write(ticket.object)
        continue
      }
      let owner = isNamed ? "\t" + (try ticket.customer.inOneLine()) : ""
      try output.write(line: ticket.line + owner)
    }
    return 0
  }
}

extension Option {
  static let everybody = Option("everybody", nil, "the tickets of all customers")
}
