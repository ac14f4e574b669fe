internal import Dispatch
internal import FoundationEssentials
public import Wormhole
internal import WormholeSyscalls

/// The app of one side: it holds the side's name, and maintains the images of one customer's
/// tickets.
///
/// The phone makes the images. The watch requests missing images from the phone, whichever side has
/// sold the ticket, and requests them again after any failure. On both sides an image is removed
/// with its ticket.
///
/// The app works on threads of its own until it is stopped.
public final class CinemaApp: Sendable {
  let office: BoxOffice
  /// The images of this side.
  public let album: Album
  let connectivity: Connectivity
  let customer: String
  let role: Role
  private let changed: @Sendable () -> Void
  private let log: @Sendable (String) -> Void
  private let state = Monitor(State())

  struct State {
    /// The tickets whose images were requested from the phone.
    var asked: [Movie.ID: Ticket.ID] = [:]
    var lastWork = ContinuousClock.now
    var hasStopped = false
    var watching: Subscription?
  }

  /// Joins the container, and starts to work.
  ///
  /// Throws `nameTaken` if the side's app already runs.
  ///
  /// - Parameters:
  ///   - container: the container.
  ///   - role: the side of the app.
  ///   - customer: the customer whose ticket images the app maintains.
  ///   - changed: is called when the set of images may have changed.
  ///   - log: receives each failure that is retried.
  public init(
    _ container: SharedContainer, as role: Role, for customer: String,
    changed: @escaping @Sendable () -> Void = {},
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    office = BoxOffice(container, as: role)
    album = Album(of: role, beside: container.directory)
    self.customer = customer
    self.role = role
    self.changed = changed
    self.log = log
    connectivity = try Connectivity(joining: container, as: role)
    do {
      try begin()
    } catch {
      // The name must be free for the next attempt.
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

  /// Ends the work and leaves the name; waits for work in progress.
  public func stop() {
    let watching = state.withLock { state in
      state.hasStopped = true
      return state.watching
    }
    watching?.stop()
    connectivity.member?.leave()
  }

  /// The time since the last work.
  public var idle: Duration { state.withLock { ContinuousClock.now - $0.lastWork } }

  // MARK: Images

  /// Makes the images match the books.
  ///
  /// The books are read here, under the lock: with books from an earlier notice, the call could
  /// remove the image of a ticket that was bought since.
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

  /// Logs a failure, and refreshes again a second later.
  func tryLater(_ words: String) { tryLater(words) { $0.refresh() } }

  func tryLater(_ words: String, _ body: @escaping @Sendable (CinemaApp) -> Void) {
    log(words)
    DispatchQueue.global().asyncAfter(deadline: .now() + 1) { [weak self] in
      guard let self, !state.withLock({ $0.hasStopped }) else { return }
      body(self)
    }
  }

  /// Logs a failure, and waits for a second.
  ///
  /// - Returns: false if the app has stopped.
  func pause(_ words: String) -> Bool {
    log(words)
    let end = ContinuousClock.now + .seconds(1)
    while !state.withLock({ $0.hasStopped }) {
      guard .now < end else { return true }
      _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(20))
    }
    return false
  }

  func tell(_ words: String) { log(words) }

  /// Runs a closure for a ticket of the customer, unless the ticket is no longer valid.
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
