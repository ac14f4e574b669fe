import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A run of both apps, with a storm of purchases by real processes, some killed and some suspended;
/// afterwards a check of the books.
final class CinemaDemo: Sendable {
  private let stage = Demonstration("cinematime")
  private let output: Output
  private let apps = Monitor<[Child]>([])
  private let count = 120

  init(_ output: Output) { self.output = output }

  func run() throws {
    try stage.run({ try SharedContainer(directory: stage.path + "/office") }, play)
  }

  private func play(_ container: SharedContainer) throws {
    try output.write(
      line: "Both apps run, and many other processes sell tickets.")
    for role in Role.allCases { try startApp(role) }
    let ended = try storm()
    try output.write(line: "Some sellers were killed during a sale, and some were suspended.")
    // Both apps start again, from the state that the killed apps have left.
    try replaceApps()
    try reconcile(container, ended)
  }

  // MARK: The storm

  /// Makes each purchase in a process of its own.
  private func storm() throws -> [StormOutcome] {
    try Storm(stage, of: count, confirmed: "sold", output).run { number, output in
      let movie = Movie.all.randomElement()!
      let role = Role.allCases.randomElement()!
      let words = ["buy", "\(movie.id)", "--yes"]
      return try self.spawn(
        ["--as", role.rawValue, "--for", Self.customer(number)] + words, output: output)
    }
  }

  private static func customer(_ number: Int) -> String { "guest \(number)" }

  // MARK: The books

  private func reconcile(_ container: SharedContainer, _ ended: [StormOutcome]) throws {
    let books = try BoxOffice(container, as: .phone).books
    let owners = Set(books.tickets.map(\.customer))
    let confirmed = ended.filter(\.isConfirmed).map { Self.customer($0.number) }
    let unconfirmed = ended.filter { !$0.isConfirmed }.map { Self.customer($0.number) }
    let kept = confirmed.count { owners.contains($0) }
    let sold = unconfirmed.count { owners.contains($0) }
    let lines = [
      "\(count) purchases were started.",
      "\(confirmed.count) were confirmed, and the books contain \(kept) of them.",
      "\(unconfirmed.count) were refused, or killed before the confirmation: the books "
        + "contain \(sold) of them completely, and \(unconfirmed.count - sold) not at all.",
      "\(books.sold) tickets were sold, \(books.takenBack) returned, "
        + "\(books.tickets.count) are valid.",
    ]
    for line in lines { try output.write(line: line) }
    guard kept == confirmed.count, sold + kept == books.tickets.count, books.addUp else {
      throw Failure(.software, "books", "cannot show the demonstration: the books do not add up")
    }
    try output.write(line: "The books add up.")
  }

  private func replaceApps() throws {
    for app in apps.withLock({ $0 }) {
      try? app.send(.kill)
      _ = try stage.end(app)
    }
    for role in Role.allCases { try startApp(role) }
  }

  // MARK: Processes

  private func startApp(_ role: Role) throws {
    let conduit = try stage.attempt { () throws(Errno) in try SharedPipe() }
    let app = try spawn(["--as", role.rawValue, "run"], output: conduit.writing)
    apps.withLock { $0.append(app) }
    conduit.closeWriting()
    // The app's first line of output shows that the app displays its content.
    _ = try stage.attempt { () throws(Errno) in try conduit.collect(limit: 0) }
  }

  private func spawn(_ words: [String], output: CInt) throws -> Child {
    try stage.start { () throws(Errno) in
      let nothing = try Descriptor.open(path: "/dev/null", [.readWrite])
      return try Child.spawn(
        try Processes.ownProgram(), words,
        environment: Processes.environment(setting: ["WORMHOLE_CONTAINER=\(stage.path)/office"]),
        input: nothing.rawValue, output: output, error: nothing.rawValue)
    }
  }
}

extension Verb {
  static let demo = Verb(
    "demo", "sell tickets while sellers are killed, then check the books", [], [],
    [
      "Runs both apps and 120 purchases, each in a process of its own, four at a time, on both "
        + "sides. One process in four is killed at a random moment, and one in twenty is "
        + "suspended for longer than other processes wait. Then compares the confirmed purchases "
        + "with the books, and exits with 70 if a purchase is lost or the books do not add up.",
      "Works in a directory of its own below TMPDIR, and removes the directory. On a terminal, "
        + "shows the storm while it lasts: a bar, and the numbers of tickets sold, and of sellers "
        + "killed and suspended.",
    ],
    [Example("cinematime demo", "half a minute at most")],
    action: "show the demonstration"
  ) { invocation in
    try CinemaDemo(invocation.output).run()
    return 0
  }
}
