public import Observation
public import Wormhole

/// The ticket office as a model for a user interface: a customer's tickets, and the films on offer.
///
/// The model shows the changes of both sides soon after they were made, and its own changes at
/// once. The model is isolated to the main actor. Buying and returning wait until the disk has
/// synced the change.
@MainActor @Observable
public final class TicketOffice {
  /// The books as last received.
  public private(set) var books: Books
  /// The error of the connection; nil if the connection works.
  public private(set) var failure: WormholeError?
  /// The customer whose tickets are bought and shown.
  public nonisolated let customer: String
  private nonisolated let office: BoxOffice
  @ObservationIgnored private var version = 0
  @ObservationIgnored private var watching: Subscription?

  /// Makes a model of the books in a container.
  ///
  /// - Parameters:
  ///   - container: the container.
  ///   - role: this side.
  ///   - customer: the owner of the tickets.
  public init(_ container: SharedContainer, as role: Role, for customer: String)
    throws(WormholeError)
  {
    office = BoxOffice(container, as: role)
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

  /// Shows a snapshot if it is newer than the one shown: of two callers, the slower may bring the
  /// older snapshot.
  private func show(_ latest: Snapshot<Books>) {
    if failure != nil { failure = nil }
    guard latest.metadata.version > version else { return }
    version = latest.metadata.version
    books = latest.value ?? Books()
  }

  /// The films for which the customer has a ticket.
  public var purchased: [Movie] {
    books.tickets(of: customer).compactMap { Movie.find($0.movie) }
  }

  /// All films without a ticket of the customer, by time and title.
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
  /// Throws a ``Refusal``, or an error of the container.
  @discardableResult
  public func purchase(_ movie: Movie.ID) throws -> Ticket {
    defer { refresh() }
    return try office.sell(movie, to: customer)
  }

  /// Returns a ticket.
  ///
  /// Throws a ``Refusal``, or an error of the container.
  @discardableResult
  public func giveBack(_ movie: Movie.ID) throws -> Ticket {
    defer { refresh() }
    return try office.takeBack(movie, from: customer)
  }

  private func refresh() {
    if let latest = try? office.channel.latest { show(latest) }
  }
}
