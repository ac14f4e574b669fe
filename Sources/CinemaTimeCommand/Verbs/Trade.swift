import CinemaTime
import CommandLine
import PropertyLists
import SharedContainer
import Syscalls

extension Verb {
  static let buy = Verb(
    "buy", "buy a ticket", [Operand("ID", .one, .movies(false))], [.yes, .sample],
    [
      "Buys a ticket for the film of that number. Once it has said so the ticket is there for both "
        + "sides, and would survive a power cut. On a terminal it asks first, unless --yes is "
        + "given.",
      "Exits with 1 if there is no such film, all seats are sold, or NAME has a ticket already; "
        + "nothing has changed then.",
      Invocation.sampleTrade,
      "Writes the ticket's number, time and title, with tabs between; with --json one object.",
    ],
    [
      Example("cinematime --as phone buy 34340", "one ticket for The General"),
      Example("cinematime --as watch buy 34340 --yes --for anna", "for somebody else, unasked"),
    ]
  ) { invocation in
    try invocation.refuseSampleTrade()
    let movie = try invocation.movie(invocation.operands[0])
    let office = try invocation.office()
    if !invocation.has(.yes), StandardStream.input.isTerminal {
      guard try invocation.confirms("Buy a ticket for \(movie.title) at \(movie.time)?") else {
        throw Failure(.no, "declined", "cannot buy '\(movie.title)': you have said no")
      }
    }
    try invocation.write(try office.sell(movie.id, to: invocation.customer))
    return 0
  }

  static let giveBack = Verb(
    "return", "return a ticket", [Operand("ID", .one, .movies(true))], [.sample],
    [
      "Returns the ticket for the film of that number. Somebody else may buy it then. Its image "
        + "goes on both sides, as soon as their apps run. Exits with 1 if NAME has none.",
      "Writes what 'buy' writes.",
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

  /// Asks whoever sits at the terminal.
  fileprivate func confirms(_ question: String) throws -> Bool {
    do throws(Errno) {
      try StandardStream.error.write("\(question) [y/N] ")
      let answer = String(decoding: try StandardStream.input.read(), as: UTF8.self)
      return ["y", "yes"].contains(answer.lowercased().filter { !$0.isWhitespace })
    } catch {
      throw WormholeError(error, "read", "standard input")
    }
  }
}

extension Option {
  static let yes = Option("yes", nil, "do not ask first")
}
