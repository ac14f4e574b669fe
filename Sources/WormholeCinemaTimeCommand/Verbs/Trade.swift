import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let buy = Verb(
    "buy", "buy a ticket", [Operand("ID", .one, .movies(false))], [.yes, .sample],
    [
      "Buys a ticket for the film with the number ID. Once the purchase is confirmed, the ticket "
        + "exists for both sides and survives a power cut. On a terminal, asks for confirmation "
        + "first, unless --yes is given.",
      "Exits with 1 if the film does not exist, all seats are sold, or NAME has a ticket "
        + "already. In these cases, nothing has changed.",
      Invocation.sampleTrade,
      "Writes the ticket's number, time and title, separated by tabs; with --json, writes one "
        + "object.",
    ],
    [
      Example("cinematime --as phone buy 34340", "one ticket for The General"),
      Example(
        "cinematime --as watch buy 34340 --yes --for anna",
        "for another customer, without confirmation"),
    ]
  ) { invocation in
    try invocation.refuseSampleTrade()
    let movie = try invocation.movie(invocation.operands[0])
    let office = try invocation.office()
    if !invocation.has(.yes), StandardStream.input.isTerminal {
      guard try invocation.confirms("Buy a ticket for \(movie.title) at \(movie.time)?") else {
        throw Failure(.no, "declined", "cannot buy '\(movie.title)': not confirmed")
      }
    }
    try invocation.write(try office.sell(movie.id, to: invocation.customer))
    return 0
  }

  static let giveBack = Verb(
    "return", "return a ticket", [Operand("ID", .one, .movies(true))], [.sample],
    [
      "Returns the ticket for the film with the number ID, so that the seat can be sold again. "
        + "Each side removes the ticket's image as soon as its app runs. Exits with 1 if NAME "
        + "has no ticket for the film.",
      "Writes the same fields as 'buy'.",
      Invocation.sampleTrade,
    ],
    [Example("cinematime --as watch return 34340", "the ticket for The General")]
  ) { invocation in
    try invocation.refuseSampleTrade()
    let movie = try invocation.movie(invocation.operands[0])
    let office = try invocation.office(create: false)
    try invocation.write(try office.takeBack(movie.id, from: invocation.customer))
    return 0
  }
}

extension Invocation {
  fileprivate func write(_ ticket: Ticket) throws {
    guard output.isJSON else { return try output.write(line: ticket.line) }
    let deed = ticket.history.last?.object ?? [:]
    try output.write(ticket.object.merging(deed) { $1 })
  }

  /// Asks the user at the terminal for confirmation.
  fileprivate func confirms(_ question: String) throws -> Bool {
    try naming("read", "standard input") { () throws(Errno) in
      try StandardStream.error.write("\(question) [y/N] ")
      let answer = String(decoding: try StandardStream.input.read(), as: UTF8.self)
      return ["y", "yes"].contains(answer.lowercased().filter { !$0.isWhitespace })
    }
  }
}

extension Option {
  static let yes = Option("yes", nil, "do not ask for confirmation")
}
