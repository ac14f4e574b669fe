import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Both apps: their feeds, the delay of the slower app, and the books.
final class Theatre: Sendable {
  let sides: [SideProcess]
  private let office: BoxOffice
  private let lags: LagMeter

  /// - Parameters:
  ///   - atEnd: called after both sides when a signal ends the process.
  ///   - changed: called after each change of the document.
  init(
    _ invocation: Invocation, atEnd: @escaping @Sendable () -> Void = {},
    changed: @escaping @Sendable () -> Void
  ) throws {
    // Before the container has threads, and so before there are sides.
    let started = Monitor<[SideProcess]>([])
    try Interruption.prepare {
      for side in started.withLock({ $0 }) { side.close() }
      atEnd()
    }
    let container = try invocation.open()
    office = BoxOffice(container, as: .phone)
    let lags = LagMeter()
    self.lags = lags
    sides = Role.allCases.map { role in
      SideProcess(role, container.directory, for: invocation.customer) {
        lags.hear($0, from: role)
      } changed: {
        changed()
      }
    }
    started.withLock { [sides] in $0 = sides }
    for side in sides { try side.start() }
  }

  func side(_ role: Role) -> SideProcess { sides[role == .phone ? 0 : 1] }

  var books: Books? { try? office.books }

  /// Performs a request of a page or of a typed line; returns a sentence.
  func perform(_ action: String, on role: Role, _ movie: Movie?) throws(WormholeError) -> String {
    let side = side(role)
    switch (action, movie) {
    case ("stop", _): side.stop()
    case ("kill", _): side.kill()
    case ("start", _): try side.start()
    case ("buy", let movie?), ("return", let movie?):
      guard side.type("\(action) \(movie.id)") else {
        return "the \(role) does not run: start it first"
      }
      return "the \(role) was asked to \(action) '\(movie.title)'"
    default: return "cannot do '\(action)'"
    }
    return "\(action): done for the \(role)"
  }

  /// The delay of the slower side for the last change, as a sentence.
  var lag: String { lags.sentence }

  /// The document of the page.
  func document() -> [String: PropertyListValue] {
    let books = books
    let (isReadable, addUp) = (books != nil, books?.addUp == true)
    return [
      "movies": Self.movies, "lag": .string(lag),
      "sides": .array(
        sides.map { side in
          let feed = side.feed
          return [
            "role": .string(side.role.rawValue), "state": .string(side.condition.rawValue),
            "process": .integer(Int64(side.process ?? 0)),
            "tickets": .array((feed["tickets"]?.arrayValue ?? []).map(Self.withCode)),
            "left": feed["left"] ?? [:], "message": feed["message"] ?? "",
          ]
        }),
      "books": [
        "sold": .integer(Int64(books?.sold ?? 0)),
        "returned": .integer(Int64(books?.takenBack ?? 0)),
        "valid": .integer(Int64(books?.tickets.count ?? 0)),
        "addUp": .boolean(addUp), "readable": .boolean(isReadable),
      ],
    ]
  }

  private static let movies = PropertyListValue.array(
    Movie.all.map { movie in
      [
        "id": .integer(Int64(movie.id)), "title": .string(movie.title), "time": .string(movie.time),
        "director": .string(movie.director),
        "actors": .string(movie.actors.joined(separator: ", ")),
      ]
    })

  private static func withCode(_ ticket: PropertyListValue) -> PropertyListValue {
    guard let id = ticket["id"]?.stringValue, let number = ticket["movie"]?.intValue,
      let movie = Movie.find(number), let code = try? QRCode(movie.ticketText(id))
    else { return ticket }
    return [
      "id": .string(id), "movie": .integer(Int64(number)), "code": .string(code.path),
      "side": .integer(Int64(code.side)),
    ]
  }
}

/// The comparison of the times at which both sides have shown a purchase or a return.
final class LagMeter: Sendable {
  private let state = Monitor(State())

  fileprivate struct State {
    /// The tickets that each side shows.
    var shown: [Role: Set<Ticket.ID>] = [:]
    /// The faster side of each change, and its time by the clock of all processes.
    var first: [String: (role: Role, at: Int64)] = [:]
    var sentence = ""
  }

  var sentence: String { state.withLock { $0.sentence } }

  func hear(_ feed: PropertyListValue, from role: Role) {
    guard case .integer(let at)? = feed["at"] else { return }
    let ids = Set((feed["tickets"]?.arrayValue ?? []).compactMap { $0["id"]?.stringValue })
    state.withLock { state in
      let before = state.shown.updateValue(ids, forKey: role) ?? []
      let changes =
        ids.subtracting(before).map { "+\($0)" } + before.subtracting(ids).map { "-\($0)" }
      for change in changes { state.note(change, role, at) }
    }
  }
}

extension LagMeter.State {
  fileprivate mutating func note(_ change: String, _ role: Role, _ at: Int64) {
    guard let other = first.removeValue(forKey: change), other.role != role else {
      if first.count > 1000 { first = [:] }
      first[change] = (role, at)
      return
    }
    // The other side may be the faster one: a change is visible before it is safe on the disk, and
    // the buyer waits for the disk.
    let micros = abs(at - other.at) / 1000
    let late = at < other.at ? other.role : role
    sentence =
      micros < 1_000_000
      ? "Both showed it within \(micros / 1000).\(micros % 1000 / 100) ms of each other."
      : "The \(late) showed it \(micros / 1_000_000) s later."
  }
}
