import WatchConnectivity
import Wormhole
import WormholeCinemaTime
import WormholeCommandLine

/// The app of one side, in one of the two ways of working.
@MainActor
protocol Side: AnyObject {
  func view(_ message: String) -> View
  func buy(_ movie: Movie.ID) throws -> Ticket
  func giveBack(_ movie: Movie.ID) throws -> Ticket
  /// The time since the last work.
  var idle: Duration { get }
  func stop()
}

/// Our way: both sides share the books.
final class OfficeSide: Side {
  private let role: Role
  private let office: TicketOffice
  private let app: CinemaApp

  /// - Parameter changed: is called when the view's content may have changed; the model's own
  ///   values are tracked.
  init(_ invocation: Invocation, changed: @escaping @Sendable () -> Void) throws {
    role = try invocation.role
    let container = try invocation.open()
    let output = invocation.output
    office = try TicketOffice(container, as: role, for: invocation.customer)
    app = try CinemaApp(container, as: role, for: invocation.customer, changed: changed) { words in
      output.explain(words)
    }
  }

  func view(_ message: String) -> View {
    let books = office.books
    return View(
      role: role, customer: office.customer,
      tickets: books.tickets(of: office.customer).map { ($0.movie, $0.id) },
      seatsLeft: books.seatsLeft, images: app.album.movies,
      message: office.failure.map { "\($0)" } ?? message)
  }

  func buy(_ movie: Movie.ID) throws -> Ticket { try office.purchase(movie) }

  func giveBack(_ movie: Movie.ID) throws -> Ticket { try office.giveBack(movie) }

  var idle: Duration { app.idle }

  func stop() { app.stop() }
}

/// The sample's way: each side sends its list to the other side.
final class SampleSide: Side {
  private let role: Role
  private let office: SampleOffice
  private let connectivity: SampleConnectivity

  init(_ invocation: Invocation, changed: @escaping @Sendable () -> Void) throws {
    role = try invocation.role
    guard !invocation.has(.customer) else {
      throw Failure.usage(
        "cannot run: the sample has one customer, without a name; leave out --for")
    }
    let container = try invocation.open()
    // Tickets are worth money: a transfer survives a power cut.
    var settings = WCSession.Settings()
    settings.durability = .power
    WCSession.configure(
      role == .phone ? .phone : .watch, container: container.directory, settings: settings)
    connectivity = SampleConnectivity(.default, as: role, beside: container.directory)
    office = SampleOffice(container, as: role, over: connectivity, changed: changed)
    connectivity.listenToImages(changed)
  }

  func view(_ message: String) -> View {
    View(
      role: role, customer: "me, as the sample does it",
      tickets: office.purchased.map { ($0, "") }, seatsLeft: { _ in nil },
      images: connectivity.album.movies, message: connectivity.failures.last ?? message)
  }

  func buy(_ movie: Movie.ID) throws -> Ticket { try office.purchase(movie) }

  func giveBack(_ movie: Movie.ID) throws -> Ticket { try office.giveBack(movie) }

  /// The app is never started on demand for a waiting process, and ends only on command.
  var idle: Duration { .zero }

  func stop() {}
}
