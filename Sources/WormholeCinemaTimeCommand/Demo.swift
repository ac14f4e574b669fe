import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A run of both apps, with a storm of purchases by real processes, some killed and some suspended;
/// afterwards a check of the books.
final class Demo: Sendable {
  private let stage = Demonstration("cinematime")
  private let output: Output
  private let state = Monitor(State())
  private let count = 120
  private let isShown: Bool

  private struct State {
    var apps: [Child] = []
    var next = 0
    var finished = 0
    /// The customers with a confirmed ticket, and the customers without a confirmation.
    var confirmed: [String] = []
    var unconfirmed: [String] = []
    var killed = 0
    var stopped = 0
    var failure: (any Error)?
  }

  init(_ output: Output) {
    self.output = output
    isShown = !output.isQuiet && StandardStream.error.isTerminal
  }

  func run() throws {
    try stage.run({ try SharedContainer(directory: stage.path + "/office") }, play)
  }

  private func play(_ container: SharedContainer) throws {
    try output.write(
      line: "Both apps run, and many other processes sell tickets.")
    for role in Role.allCases { try startApp(role) }
    try storm()
    try output.write(line: "Some sellers were killed during a sale, and some were suspended.")
    // Both apps start again, from the state that the killed apps have left.
    try replaceApps()
    try reconcile(container)
  }

  // MARK: The storm

  private func storm() throws {
    let sellers = try (0..<4).map { _ in
      try stage.attempt { () throws(Errno) in
        try Thread("seller") {
          var random = SystemRandomNumberGenerator()
          while let next = self.begin() {
            do {
              try self.sell(next, &random)
            } catch {
              self.state.withLock { $0.failure = $0.failure ?? error }
            }
            self.finishOne()
          }
        }
      }
    }
    for seller in sellers { seller.join() }
    if isShown { try? StandardStream.error.write("\r\u{1B}[K") }
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  private func begin() -> Int? {
    state.withLock { state in
      guard state.next < count, state.failure == nil else { return nil }
      state.next += 1
      return state.next
    }
  }

  private func finishOne() {
    state.withLock { $0.finished += 1 }
    show()
  }

  /// Draws a bar, and the numbers of sold tickets and of killed and stopped sellers.
  private func show() {
    guard isShown else { return }
    // Under the lock, so that no thread draws an earlier state over a later one.
    state.withLock { state in
      let width = 24
      let full = state.finished * width / count
      let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
      try? StandardStream.error.write(
        "\r\(bar) \(state.finished) of \(count): \(state.confirmed.count) sold, "
          + "\(state.killed) killed, \(state.stopped) stopped\u{1B}[K")
    }
  }

  /// Makes one purchase in a process of its own.
  private func sell(_ number: Int, _ random: inout SystemRandomNumberGenerator) throws {
    let movie = Movie.all.randomElement(using: &random)!
    let role = Role.allCases.randomElement(using: &random)!
    let customer = "guest \(number)"
    let conduit = try stage.attempt { () throws(Errno) in try SharedPipe() }
    let child = try spawn(
      ["--as", role.rawValue, "--for", customer, "buy", "\(movie.id)", "--yes"],
      output: conduit.writing)
    conduit.closeWriting()
    // One process in four is killed, and one in twenty is suspended for longer than other processes
    // wait.
    let fate = Int.random(in: 0..<20, using: &random)
    if fate < 6 { stage.pause(.microseconds(Int.random(in: 0..<40_000, using: &random))) }
    if fate < 5 {
      try? child.send(.kill)
      state.withLock { $0.killed += 1 }
    } else if fate == 5 {
      try? child.send(.stop)
      state.withLock { $0.stopped += 1 }
      show()
      stage.pause(.milliseconds(1200))
      try? child.send(.go)
    }
    let said = try stage.attempt { () throws(Errno) in try conduit.collect(limit: 4096) }
    let status = try stage.end(child)
    state.withLock { state in
      // A confirmation that ends in a line feed is complete: the sale is permanent.
      if said.last == UInt8(ascii: "\n") {
        state.confirmed.append(customer)
      } else {
        state.unconfirmed.append(customer)
      }
      if status != .exited(0), status != .exited(1), status != .signalled(9) {
        state.failure =
          state.failure
          ?? Failure(
            .software, "system", "cannot show the demonstration: a seller ended: \(status.code)")
      }
    }
  }

  // MARK: The books

  private func reconcile(_ container: SharedContainer) throws {
    let books = try BoxOffice(container, as: .phone).books
    let owners = Set(books.tickets.map(\.customer))
    let (confirmed, unconfirmed) = state.withLock { ($0.confirmed, $0.unconfirmed) }
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
    for app in state.withLock({ $0.apps }) {
      try? app.send(.kill)
      _ = try stage.end(app)
    }
    for role in Role.allCases { try startApp(role) }
  }

  // MARK: Processes

  private func startApp(_ role: Role) throws {
    let conduit = try stage.attempt { () throws(Errno) in try SharedPipe() }
    let app = try spawn(["--as", role.rawValue, "run"], output: conduit.writing)
    state.withLock { $0.apps.append(app) }
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
    [Example("cinematime demo", "half a minute at most")]
  ) { invocation in
    try Demo(invocation.output).run()
    return 0
  }
}
