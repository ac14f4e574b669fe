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
    let movies = Showing.groups(of: Movie.all).flatMap(\.movies)
    for movie in movies {
      let ticket = books.ticket(for: movie.id, of: invocation.customer)
      guard invocation.output.isJSON else {
        let words = [
          "\(movie.id)", movie.time, movie.title, "\(books.seatsLeft(for: movie))",
          ticket?.id ?? "-",
        ]
        try invocation.output.write(line: words.joined(separator: "\t"))
        continue
      }
      var object: [String: PropertyListValue] = [
        "movie": .integer(Int64(movie.id)), "time": .string(movie.time),
        "title": .string(movie.title), "seatsLeft": .integer(Int64(books.seatsLeft(for: movie))),
        "seats": .integer(Int64(movie.seats)),
      ]
      object["ticket"] = ticket.map { .string($0.id) }
      try invocation.output.write(object)
    }
    return 0
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
    ]
  ) { invocation in
    if invocation.has(.sample) { return try invocation.ticketsOfSample() }
    let books = try invocation.books()
    let isAll = invocation.has(.everybody)
    for ticket in isAll ? books.tickets : books.tickets(of: invocation.customer) {
      if invocation.output.isJSON {
        try invocation.output.write(ticket.object)
      } else {
        let owner = isAll ? "\t" + (try ticket.customer.inOneLine()) : ""
        try invocation.output.write(line: ticket.line + owner)
      }
    }
    return 0
  }

  static let history = Verb(
    "history", "print the purchases and returns", [], [.sample],
    [
      "Writes a line for each purchase and return, in order of time, separated by tabs: time, "
        + "side, action, ticket number, customer, and film. Of the returned tickets, lists the "
        + "last \(Books.mostReturned). With --json, writes one object per line.",
      "Not with --sample, which stores the current tickets without their history.",
    ],
    [Example("cinematime --as phone history", "all purchases and returns")]
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

extension Option {
  static let everybody = Option("everybody", nil, "the tickets of all customers")
}
