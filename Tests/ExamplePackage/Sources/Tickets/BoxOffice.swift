import Wormhole

/// An order of seats for a film.
public struct Order: Codable, Equatable, Sendable {
  /// The name of the film.
  public var film: String
  /// How many seats.
  public var seats: Int

  /// An order for the given number of seats.
  public init(film: String, seats: Int) {
    self.film = film
    self.seats = seats
  }
}

/// A request for the number of seats left.
public struct SeatsLeft: RequestValue {
  /// The number of seats.
  public typealias Reply = Int
  /// The name of the film.
  public var film: String

  /// A request for the seats of one film.
  public init(film: String) { self.film = film }
}

/// Fewer seats are left than were ordered.
public struct SoldOut: Error {}

/// Sells the seats of a container's films to members that send orders.
public final class BoxOffice: Sendable {
  private let container: SharedContainer
  private let member: Member

  /// A box office that is closed.
  public init(_ member: Member, in container: SharedContainer) {
    self.container = container
    self.member = member
  }

  private func seats(_ film: String) -> Channel<Int> {
    container.channel("seats.\(film)", of: Int.self)
  }

  private func sales() -> Channel<Set<String>> {
    container.channel("sales", of: Set<String>.self)
  }

  /// Puts up a film.
  public func show(_ film: String, seats count: Int) throws { try seats(film).put(count) }

  /// Handles one order.
  ///
  /// A message may be delivered twice, marked the second time: an order that was sold is not sold
  /// again.
  public func sell(_ message: Message) throws {
    let order = try message.value(as: Order.self)
    if message.isRedelivered, try sales().value?.contains(message.id) == true { return }
    try seats(order.film).update(default: 0) { left in
      guard left >= order.seats else { throw SoldOut() }
      left -= order.seats
    }
    try sales().update(default: []) { _ = $0.insert(message.id) }
  }

  /// Replies to one request.
  public func answer(_ request: Request) throws {
    let question = try request.value(as: SeatsLeft.self)
    guard let left = try seats(question.film).value else {
      return request.refuse("there is no film '\(question.film)'")
    }
    try request.reply(left)
  }

  /// Sells as long as the caller retains the returned objects.
  public func open() throws -> [any Sendable] {
    [
      try member.receive(kinds: ["Order"]) { [self] in try sell($0) },
      member.respond(toKind: "SeatsLeft") { [self] request in
        do { try answer(request) } catch { request.refuse("\(error)") }
      },
    ]
  }
}
