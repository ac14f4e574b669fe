public import Observation
public import Wormhole

/// The ticket office as a model for a user interface: what one customer has, and may buy.
///
/// It shows what both sides have done, soon after it was done; and what was done through it, at
/// once. It lives on the main actor. Buying and returning wait until the disk has it.
@MainActor @Observable
public final class TicketOffice {
  /// The books as last heard of.
  public private(set) var books: Books
  /// What is wrong with the connection; nil if all is well.
  public private(set) var failure: WormholeError?
  /// Whose tickets are bought and shown.
  public nonisolated let customer: String
  private nonisolated let office: BoxOffice
  @ObservationIgnored private var version = 0
  @ObservationIgnored private var watching: Wormhole.Subscription?

  /// A model of the books in a container.
  ///
  /// - Parameters:
  ///   - hole: the container.
  ///   - role: the side that this is.
  ///   - customer: whose tickets these are.
  public init(_ hole: Wormhole, as role: Role, for customer: String) throws(WormholeError) {
    office = BoxOffice(hole, as: role)
    self.customer = customer
    books = Books()
    watching = try office.channel.watch { @MainActor [weak self] snapshot in
      self?.show(snapshot)
    } failure: { @MainActor [weak self] error in
      self?.failure = error
    }
    if let latest = try office.channel.latest { show(latest) }
  }

  isolated deinit { watching?.stop() }

  /// Shows what is newer than what is shown: of two who bring it, the slower may bring the older.
  private func show(_ latest: Wormhole.Snapshot<Books>) {
    if failure != nil { failure = nil }
    guard latest.metadata.version > version else { return }
    version = latest.metadata.version
    books = latest.value ?? Books()
  }

  /// The films that the customer has tickets for.
  public var purchased: [Movie] {
    books.tickets(of: customer).compactMap { Movie.find($0.movie) }
  }

  /// The others, by time and title.
  public var purchasable: [Showing] {
    let purchased = Set(purchased)
    return Showing.groups(of: Movie.all.filter { !purchased.contains($0) })
  }

  /// Whether the customer has a ticket for a film.
  public func isPurchased(_ movie: Movie) -> Bool {
    books.ticket(for: movie.id, of: customer) != nil
  }

  /// Buys a ticket.
  ///
  /// Throws a ``Refusal``, or what is wrong with the container.
  @discardableResult
  public func purchase(_ movie: Movie.ID) throws -> Ticket {
    defer { refresh() }
    return try office.sell(movie, to: customer)
  }

  /// Returns a ticket.
  ///
  /// Throws a ``Refusal``, or what is wrong with the container.
  @discardableResult
  public func giveBack(_ movie: Movie.ID) throws -> Ticket {
    defer { refresh() }
    return try office.takeBack(movie, from: customer)
  }

  private func refresh() {
    if let latest = try? office.channel.latest { show(latest) }
  }
}
