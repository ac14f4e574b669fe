internal import Foundation
public import Wormhole
internal import WormholeSyscalls

/// The ticket office as in the published sample: each side has its own list and sends the whole
/// list with each change.
///
/// The class corresponds to ``TicketOffice``, to show its losses.
public final class SampleOffice: Sendable {
  private let connectivity: SampleConnectivity
  private let role: Role
  private let defaults: Defaults
  private let state: Monitor<State>

  private struct State: Sendable {
    var purchased: [Movie.ID]
    var changed: @Sendable () -> Void
  }

  /// Makes an office that stores its list in the role's own settings.
  public init(
    _ container: SharedContainer, as role: Role, over connectivity: SampleConnectivity,
    changed: @escaping @Sendable () -> Void = {}
  ) {
    self.role = role
    self.connectivity = connectivity
    defaults = Self.defaults(of: role, in: container)
    state = Monitor(State(purchased: Self.purchased(by: role, in: container), changed: changed))
    connectivity.listen { [weak self] movies in self?.replace(by: movies) }
  }

  /// Returns the list in a role's settings, whether the role's app runs or not.
  public static func purchased(by role: Role, in container: SharedContainer) -> [Movie.ID] {
    (try? defaults(of: role, in: container).value([Movie.ID].self, forKey: "purchased")) ?? []
  }

  /// Returns the list as tickets, which have the numbers of their films.
  package static func tickets(of role: Role, in container: SharedContainer) -> [Ticket] {
    purchased(by: role, in: container)
      .map { Ticket(id: "\($0)", movie: $0, customer: "me", history: []) }
  }

  private static func defaults(of role: Role, in container: SharedContainer) -> Defaults {
    container.defaults("sample.\(role.rawValue)")
  }

  /// The films with tickets, as far as this side knows.
  public var purchased: [Movie.ID] { state.withLock { $0.purchased } }

  /// Buys a ticket; the ticket's number is the film's number.
  @discardableResult
  public func purchase(_ movie: Movie.ID) throws -> Ticket {
    guard let found = Movie.find(movie) else { throw Refusal.unknownMovie("\(movie)") }
    let ticket = Ticket(id: "\(movie)", movie: movie, customer: "me", history: [])
    try change { purchased in
      if purchased.contains(movie) { throw Refusal.alreadySold(found, ticket) }
      purchased.append(movie)
    }
    tellTheOtherSide()
    return ticket
  }

  /// Returns a ticket.
  ///
  /// Loss 6: the watch removes the image of a ticket that the watch returns; if the phone returns a
  /// ticket, its image remains on the watch.
  @discardableResult
  public func giveBack(_ movie: Movie.ID) throws -> Ticket {
    guard let found = Movie.find(movie) else { throw Refusal.unknownMovie("\(movie)") }
    try change { purchased in
      guard let place = purchased.firstIndex(of: movie) else { throw Refusal.notSold(found, "me") }
      purchased.remove(at: place)
    }
    if role == .watch { try connectivity.album.remove(movie) }
    tellTheOtherSide()
    return Ticket(id: "\(movie)", movie: movie, customer: "me", history: [])
  }

  /// Sends the whole list; the watch requests the images that are missing.
  ///
  /// Loss 5: the watch requests images only when the watch itself has bought or returned a ticket.
  public func tellTheOtherSide() {
    let purchased = purchased
    let present = connectivity.album.movies
    let lacking = role == .watch ? purchased.filter { !present.contains($0) } : nil
    connectivity.send(Payload(purchased: purchased, qrCodes: lacking), by: .highPriority)
  }

  /// Loss 1: tickets that this side has bought and the other side does not know of yet are lost.
  private func replace(by movies: [Movie.ID]) {
    try? change { $0 = movies }
  }

  private func change(_ body: (inout [Movie.ID]) throws -> Void) throws {
    let changed = try state.withLock { state in
      try body(&state.purchased)
      try defaults.set(state.purchased, forKey: "purchased")
      return state.changed
    }
    changed()
  }
}
