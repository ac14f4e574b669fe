import WormholeCinemaTime
import WormholePropertyLists

/// The content that the app of one side shows.
struct View {
  let role: Role
  let customer: String
  /// The films with tickets, each with the note beside it.
  let tickets: [(movie: Movie.ID, note: String)]
  /// Returns the number of free seats of a film; nil if the number is unknown.
  let seatsLeft: (Movie) -> Int?
  /// The films whose images exist.
  let images: Set<Movie.ID>
  let message: String
  /// The film that the arrows have selected.
  var selected: Movie.ID?
  /// The film that is shown alone, with the code of its ticket.
  var alone: Movie.ID?

  /// A piece of a line, with its style.
  struct Piece: Hashable {
    enum Style { case plain, bold, dim, code }

    let text: String
    let style: Style

    init(_ text: String, _ style: Style = .plain) {
      self.text = text
      self.style = style
    }
  }

  /// Returns the content of each line of the screen.
  func lines(columns: Int) -> [[Piece]] {
    var lines = [
      [Piece("CinemaTime", .bold), Piece(" on the \(role.rawValue), for \(Self.shown(customer))")]
    ]
    lines.append([Piece(String(repeating: "─", count: min(columns, 60)), .dim)])
    if let alone = alone.flatMap(Movie.find) { return lines + only(alone) }
    let owned = Set(tickets.map(\.movie))
    let movies = Movie.all.filter { !owned.contains($0.id) }
    for (index, showing) in Showing.groups(of: movies).enumerated() {
      if index == 0 { lines.append([Piece("To buy", .bold)]) }
      for movie in showing.movies {
        let left = seatsLeft(movie).map { $0 == 0 ? "sold out" : "\($0) seats left" } ?? ""
        lines.append([Piece(row(movie)), Piece(left, .dim)])
      }
    }
    lines.append([])
    lines.append([Piece(tickets.isEmpty ? "No tickets" : "Tickets", .bold)])
    for ticket in tickets {
      guard let movie = Movie.find(ticket.movie) else { continue }
      let note = [Self.shown(ticket.note), images.contains(movie.id) ? "" : "no image yet"]
      lines.append([
        Piece(row(movie)), Piece(note.filter { !$0.isEmpty }.joined(separator: ", "), .dim),
      ])
    }
    lines.append([])
    lines.append([Piece(Self.shown(message), .dim)])
    return lines
  }

  /// The lines of one film.
  private func only(_ movie: Movie) -> [[Piece]] {
    let by = "by \(movie.director), with \(movie.actors.joined(separator: ", "))"
    let lines = [[Piece("\(movie.title), \(movie.time)", .bold)], [Piece(by, .dim)]]
    guard let ticket = tickets.first(where: { $0.movie == movie.id }) else {
      return lines + [[Piece("no ticket; 'buy \(movie.place)' buys one")]]
    }
    let text = ticket.note.isEmpty ? movie.ticketText : movie.ticketText(ticket.note)
    let code = (try? QRCode(text))?.lines ?? []
    return lines + [[Piece("ticket \(Self.shown(ticket.note))")]] + code.map { [Piece($0, .code)] }
  }

  /// The content as a line of words.
  var line: String {
    let movies = tickets.map { "\($0.movie)" }.joined(separator: " ")
    let images = images.sorted().map { "\($0)" }.joined(separator: " ")
    return "tickets: \(movies.isEmpty ? "-" : movies); images: \(images.isEmpty ? "-" : images)"
  }

  /// The content for a program.
  var object: [String: PropertyListValue] {
    [
      "tickets": .array(tickets.map { .integer(Int64($0.movie)) }),
      "images": .array(images.sorted().map { .integer(Int64($0)) }),
    ]
  }

  private func row(_ movie: Movie) -> String {
    let mark = movie.id == selected ? "▸" : " "
    let columns = column(movie.time, 9) + column("\(movie.id)", 9) + column(movie.title, 26)
    return "\(mark)\(movie.place) \(columns)"
  }

  private func column(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  /// The content for another program, with the numbers of tickets and of free seats.
  var feed: [String: PropertyListValue] {
    let left = Movie.all.compactMap { movie in
      seatsLeft(movie).map { ("\(movie.id)", PropertyListValue.integer(Int64($0))) }
    }
    return [
      "tickets": .array(
        tickets.map { ["movie": .integer(Int64($0.movie)), "id": .string($0.note)] }),
      "left": .dictionary(Dictionary(left) { $1 }), "message": .string(Self.shown(message)),
      "images": .array(images.sorted().map { .integer(Int64($0)) }),
    ]
  }

  /// Replaces characters that would move the cursor.
  static func shown(_ text: String) -> String {
    String(text.map { $0.unicodeScalars.contains(where: \.isControl) ? "?" : $0 })
  }
}
