import FoundationEssentials
import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let show = Verb(
    "show", "show a film and the code of its ticket", [Operand("ID", .one, .movies())],
    [.png, .sample],
    [
      "Writes the data of the film; on the phone, also its poster and its plot. If NAME has a "
        + "ticket, draws the code of the ticket for a terminal with light letters on a dark "
        + "background.",
      "With --png, writes the image of the ticket to FILE instead, or to standard output if FILE "
        + "is '-'. The phone makes images. The watch has the images that its app has received, "
        + "and requests other images from the phone's app, which is started if it is not running "
        + "and 'install' has registered it.",
      "Exits with 1 if the film does not exist, or if NAME has no ticket for --png; with 69 if "
        + "the watch needs the phone's app, and the app is not running.",
      "Not with --sample: only the sample's app receives images.",
    ],
    [
      Example("cinematime --as phone show 34340", "the film, and the ticket's code"),
      Example("cinematime --as watch show 34340 --png ticket.png", "the ticket's image"),
    ]
  ) { invocation in
    try invocation.refuseSample("only the sample's app receives and shows images")
    let movie = try invocation.movie(invocation.operands[0])
    let books = try invocation.books()
    let ticket = books.ticket(for: movie.id, of: invocation.customer)
    if let path = invocation.value(.png) {
      guard ticket != nil else {
        throw Failure(
          .no, "notSold",
          "cannot show the ticket for '\(movie.title)': '\(invocation.customer)' has none")
      }
      try invocation.write(try invocation.image(of: movie), to: path)
    } else if invocation.output.isJSON {
      try invocation.describe(movie, ticket, books)
    } else {
      try invocation.draw(movie, ticket, books)
    }
    return 0
  }
}

extension Invocation {
  fileprivate func draw(_ movie: Movie, _ ticket: Ticket?, _ books: Books) throws {
    var lines = [
      movie.title, "\(movie.time), \(books.seatsLeft(for: movie)) of \(movie.seats) seats left",
      "by \(movie.director), with \(movie.actors.joined(separator: ", "))",
    ]
    if try role == .phone {
      lines += ["poster: \(movie.poster)", ""]
      lines += Help.wrapped(movie.synopsis, to: 80).split(separator: "\n").map(String.init)
    }
    if let ticket {
      // A ticket can be shown only if the phone has made its image.
      _ = try image(of: movie)
      lines += ["", "ticket \(ticket.id) of \(try ticket.customer.inOneLine())"]
      let isPlain = !(Processes.environment("NO_COLOR") ?? "").isEmpty
      lines += try QRCode(movie.ticketText(ticket.id))
        .lines(colored: StandardStream.output.isTerminal && !isPlain)
    }
    for line in lines { try output.write(line: line) }
  }

  fileprivate func describe(_ movie: Movie, _ ticket: Ticket?, _ books: Books) throws {
    var object: [String: PropertyListValue] = [
      "movie": .integer(Int64(movie.id)), "title": .string(movie.title),
      "director": .string(movie.director),
      "actors": .array(movie.actors.map { .string($0) }), "time": .string(movie.time),
      "seats": .integer(Int64(movie.seats)),
      "seatsLeft": .integer(Int64(books.seatsLeft(for: movie))),
    ]
    if try role == .phone {
      object["poster"] = .string(movie.poster)
      object["synopsis"] = .string(movie.synopsis)
    }
    if let ticket {
      object["ticket"] = .string(ticket.id)
      object["code"] = .string(movie.ticketText(ticket.id))
    }
    try output.write(object)
  }

  /// Returns the image of a ticket: on the phone, made here; on the watch, made by the phone.
  fileprivate func image(of movie: Movie) throws -> Data {
    let role = try role
    guard role == .watch else { return Data(try movie.ticketImage().bytes) }
    let container = try open(create: false)
    if let image = Album(of: role, beside: container.directory).image(of: movie.id) { return image }
    let reply = try ask(container, for: movie)
    guard let image = reply?.images[movie.id] else {
      throw Failure(
        .no, "noImage",
        "cannot show the ticket for '\(movie.title)': the phone makes no images of tickets for "
          + "\(customer)")
    }
    return image
  }

  /// Sends a request to the phone's app, and starts the app if a start is registered.
  private func ask(_ container: SharedContainer, for movie: Movie) throws -> Reply? {
    do {
      return try Connectivity(visiting: container, as: .watch)
        .send(Payload(qrCodes: [movie.id]), by: .failable)
    } catch {
      guard error.code == .notFound else { throw error }
      var error = error
      error.hint = "run the phone's app, or register it with 'cinematime install'"
      var failure = Failure(error)
      failure.status = ExitCode.unavailable.rawValue
      throw failure
    }
  }

  fileprivate func write(_ image: Data, to path: String) throws {
    guard path != "-" else { return try output.write(Array(image)) }
    do {
      try image.write(to: URL(filePath: path), options: .atomic)
    } catch {
      throw Failure(
        .refused, "system", "cannot write image '\(path)': \(error)")
    }
  }
}

extension Option {
  static let png = Option("png", .file("FILE"), "file for the ticket's image")
}
