import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let both = Verb(
    "both", "show both apps beside each other in one terminal", [], [],
    [
      "Starts the app of the phone and the app of the watch, each in a process of its own, and "
        + "draws what both show. The arrows select a side and a film; Enter buys a ticket there, "
        + "or returns it. Words to type are 'stop', 'kill' and 'start' for the process of the "
        + "selected side, 'buy N', 'return N', 'help' and 'quit'. The end of this command ends "
        + "both processes.",
      "Requires a terminal; 'run' writes lines of one side.",
    ],
    [Example("cinematime --container office both", "the phone and the watch")],
    action: "show both apps"
  ) { invocation in
    let screen = Screen(invocation.output)
    guard screen.isTerminal else {
      throw Failure.usage("cannot show both: this is no terminal; 'run' writes the lines of a side")
    }
    try BothSides(invocation, screen).run()
    return 0
  }
}

/// The two sides in one terminal, for one thread that draws; another thread reads the keys.
private final class BothSides: Sendable {
  private let screen: Screen
  private let theatre: Theatre
  private let state: Monitor<State>

  private struct State {
    var isDue = true
    var isOver = false
    var lines: [String] = []
    var role = Role.phone
    var movie = Movie.all[0]
    var message = "the arrows select, Enter buys or returns, 'help' tells more"
  }

  init(_ invocation: Invocation, _ screen: Screen) throws {
    let state = Monitor(State())
    (self.screen, self.state) = (screen, state)
    theatre = try Theatre(invocation, atEnd: { screen.close() }) {
      state.signal { $0.isDue = true }
    }
  }

  func run() throws {
    defer {
      screen.close()
      for side in theatre.sides { side.close() }
    }
    try screen.open()
    try naming("read", "standard input") { () throws(Errno) in
      try Thread("keys") { [state, screen] in
        var typed = TypedInput(isTerminal: true)
        while let bytes = try? StandardStream.input.read(), !bytes.isEmpty {
          let lines = typed.lines(adding: bytes)
          screen.prompt = typed.prompt
          state.signal { [hasEnded = typed.hasEnded] state in
            state.lines += lines
            (state.isDue, state.isOver) = (true, state.isOver || hasEnded)
          }
        }
      }.detach()
    }
    while let lines = wait() {
      for line in lines { perform(line) }
      try screen.show(lines(columns:))
    }
  }

  private func wait() -> [String]? {
    state.wait(until: nil) { state -> [String]?? in
      guard state.isDue || state.isOver else { return nil }
      defer { (state.isDue, state.lines) = (false, []) }
      return .some(state.isOver ? nil : state.lines)
    } ?? nil
  }

  private func perform(_ line: String) {
    let (role, movie) = state.withLock { ($0.role, $0.movie) }
    let words = line.split(separator: " ").map(String.init)
    let named = words.count > 1 ? Movie.find(typed: words[1]) : movie
    let place = movie.place - 1
    let count = Movie.all.count
    switch words.first {
    case "left", "right": state.withLock { $0.role = role.peer }
    case "up": state.withLock { $0.movie = Movie.all[(place + count - 1) % count] }
    case "down": state.withLock { $0.movie = Movie.all[(place + 1) % count] }
    case "quit": state.signal { $0.isOver = true }
    case "help":
      tell("buy N, return N; stop, kill, start: the process of the \(role); quit")
    case nil:
      let action = ticket(for: movie, of: role) == nil ? "buy" : "return"
      perform(action, on: role, movie)
    case let word? where words.count == 1 && Movie.find(typed: word) != nil:
      state.withLock { $0.movie = Movie.find(typed: word)! }
    case let word?: perform(word, on: role, named)
    }
  }

  /// A failure is shown, and the other side continues.
  private func perform(_ action: String, on role: Role, _ movie: Movie?) {
    do throws(WormholeError) {
      tell(try theatre.perform(action, on: role, movie))
    } catch {
      tell("\(error)")
    }
  }

  private func tell(_ message: String) { state.signal { ($0.message, $0.isDue) = (message, true) } }

  private func ticket(for movie: Movie, of role: Role) -> String? {
    theatre.side(role).feed["tickets"]?.arrayValue?
      .first { $0["movie"]?.intValue == movie.id }?["id"]?.stringValue
  }

  // MARK: Drawing

  private func lines(columns: Int) -> [[View.Piece]] {
    let state = state.withLock { $0 }
    let width = max(20, (columns - 3) / 2)
    let sides = theatre.sides.map { rows(of: $0, state, width) }
    var lines = zip(sides[0], sides[1]).map { $0 + [View.Piece(" │ ", .dim)] + $1 }
    lines.append([])
    if let books = theatre.books {
      lines.append([
        View.Piece("\(books.sold) sold, \(books.takenBack) returned, "),
        View.Piece("\(books.tickets.count) valid: the books "),
        View.Piece(books.addUp ? "add up" : "do not add up", .bold),
      ])
    } else {
      lines.append([View.Piece("the books "), View.Piece("cannot be read", .bold)])
    }
    lines.append([View.Piece(theatre.lag, .bold)])
    lines.append([View.Piece(state.message, .dim)])
    return lines
  }

  private func rows(of side: SideProcess, _ state: State, _ width: Int) -> [[View.Piece]] {
    let isSelected = state.role == side.role
    let name = side.role == .phone ? "Phone" : "Watch"
    let process = side.process.map { ", process \($0)" } ?? ""
    let head = "\(isSelected ? "▸ " : "  ")\(name) \(side.condition.rawValue)\(process)"
    let films = Movie.all.map { movie in
      let left = side.feed["left"]?["\(movie.id)"]?.intValue.map { $0 == 0 ? "sold out" : "\($0)" }
      let ticket = ticket(for: movie, of: side.role).map { "ticket \(View.shown($0))" }
      // The books may contain a ticket's number of any length.
      let note = String((ticket ?? left ?? "").prefix(width))
      let mark = isSelected && movie == state.movie ? "▸" : " "
      let title = "\(mark)\(movie.place) \(movie.time) \(movie.title)"
      return column(String(title.prefix(max(0, width - note.count - 1))), width - note.count) + note
    }
    let style: View.Piece.Style = side.condition == .running ? .plain : .dim
    return [[View.Piece(column(head, width), .bold)]]
      + (films + [column(side.feed["message"]?.stringValue ?? "", width)]).map {
        [View.Piece($0, style)]
      }
  }

  private func column(_ text: String, _ width: Int) -> String {
    let cut = text.prefix(width)
    return cut + String(repeating: " ", count: width - cut.count)
  }
}
