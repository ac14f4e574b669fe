internal import Dispatch
internal import FoundationEssentials
internal import Synchronization
public import Wormhole

/// The app of one side: it has the side's name, and sees to the images of one customer's tickets.
///
/// The phone makes them. The watch asks the phone for those it lacks, whichever side has sold the
/// ticket, and again after any failure. On both sides an image goes with its ticket.
///
/// It works on threads of its own until it is stopped.
public final class CinemaApp: Sendable {
  let office: BoxOffice
  /// The images that this side has.
  public let album: Album
  let connectivity: Connectivity
  let customer: String
  let role: Role
  private let changed: @Sendable () -> Void
  private let log: @Sendable (String) -> Void
  private let state = Mutex(State())

  struct State: ~Copyable {
    /// The tickets whose images the phone was asked for.
    var asked: [Movie.ID: Ticket.ID] = [:]
    var lastWork = ContinuousClock.now
    var hasStopped = false
    var watching: Wormhole.Subscription?
  }

  /// Joins, and begins to work.
  ///
  /// Throws `nameTaken` if the side's app runs already.
  ///
  /// - Parameters:
  ///   - hole: the container.
  ///   - role: which side.
  ///   - customer: whose tickets it has images of.
  ///   - changed: is called when there may be other images than before.
  ///   - log: is told what goes wrong and is tried again.
  public init(
    _ hole: Wormhole, as role: Role, for customer: String,
    changed: @escaping @Sendable () -> Void = {},
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    office = BoxOffice(hole, as: role)
    album = Album(of: role, beside: hole.directory)
    self.customer = customer
    self.role = role
    self.changed = changed
    self.log = log
    connectivity = try Connectivity(joining: hole, as: role)
    do {
      try begin()
    } catch {
      // Whoever tries again finds the name free.
      connectivity.member?.leave()
      throw error
    }
  }

  private func begin() throws {
    try album.prepare()
    album.sweep()
    switch role {
    case .phone: try beginPhone()
    case .watch: try beginWatch()
    }
    let watching = try office.channel.watch { [weak self] _ in
      self?.refresh()
    } failure: { [log] error in
      log("\(error)")
    }
    state.withLock { $0.watching = watching }
  }

  /// Ends its work and gives the name back; what is under way is waited for.
  public func stop() {
    let watching = state.withLock { state in
      state.hasStopped = true
      return state.watching
    }
    watching?.stop()
    connectivity.member?.leave()
  }

  /// How long it has had nothing to do.
  public var idle: Duration { state.withLock { .now - $0.lastWork } }

  // MARK: Images

  /// Brings the images in line with the books.
  ///
  /// The books are read in here, under the lock: with those that somebody was told of a moment ago
  /// it might remove the image of a ticket that was bought since.
  func refresh() {
    defer { changed() }
    state.withLock { state in
      guard !state.hasStopped else { return }
      state.lastWork = .now
      do {
        let tickets = try office.books.tickets(of: customer)
        let present = try album.findMovies()
        for movie in present.subtracting(tickets.map(\.movie)) { try album.remove(movie) }
        switch role {
        case .phone: for ticket in tickets { try makeImage(of: ticket.movie) }
        case .watch: try ask(for: tickets, &state)
        }
      } catch {
        tryLater("\(error)")
      }
    }
  }

  /// Says what has gone wrong, and looks once more a second later.
  func tryLater(_ words: String) { tryLater(words) { $0.refresh() } }

  func tryLater(_ words: String, _ body: @escaping @Sendable (CinemaApp) -> Void) {
    log(words)
    DispatchQueue.global().asyncAfter(deadline: .now() + 1) { [weak self] in
      guard let self, !state.withLock({ $0.hasStopped }) else { return }
      body(self)
    }
  }

  func tell(_ words: String) { log(words) }

  /// Does something about a ticket of the customer's, unless it is not valid any more.
  func withTicket(for movie: Movie.ID, _ body: (inout State) throws -> Void) throws {
    defer { changed() }
    try state.withLock { state in
      state.lastWork = .now
      guard try office.books.ticket(for: movie, of: customer) != nil else { return }
      try body(&state)
    }
  }

  func keep(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
}
