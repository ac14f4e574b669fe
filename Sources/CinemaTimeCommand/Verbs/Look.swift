import CinemaTime
import CommandLine
import PropertyLists

extension Verb {
  static let list = Verb(
    "list", "list the films, by time", [], [.sample],
    [
      "Writes a line for each film with tabs between: number, time, title, how many seats are "
        + "left, and the number of NAME's ticket, or a dash. With --json, one object a line.",
      "With --sample, as the side's own list has it, which need not be the other's; the sample "
        + "counts no seats, so there is a dash.",
    ],
    [Example("cinematime --as phone list", "what is shown")]
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
      "Writes a line for each of NAME's tickets with tabs between: its number, time and title. "
        + "With --everybody, those of all customers, and whose they are at the end of the line. "
        + "With --json, one object a line.",
      "With --sample, those of the side's own list, which need not be the other's; a ticket's "
        + "number is the film's there.",
    ],
    [
      Example("cinematime --as watch tickets", "what there is on the watch"),
      Example("cinematime --as watch tickets --sample", "what the sample has kept there"),
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
    "history", "say what was done with the tickets", [], [.sample],
    [
      "Writes a line for each purchase and return, the first thing first, with tabs between: when, "
        + "on which side, what, the ticket's number, whose it was, and the film. Of tickets that "
        + "were returned, the last \(Books.mostReturned). With --json, one object a line.",
      "Not with --sample: it keeps what there is, and not what was done.",
    ],
    [Example("cinematime --as phone history", "who did what when")]
  ) { invocation in
    try invocation.refuseSample("the sample keeps what there is, and not what was done")
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
