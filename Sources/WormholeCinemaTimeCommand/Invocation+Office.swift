import FoundationEssentials
import Wormhole
package import WormholeCinemaTime
package import WormholeCommandLine
import WormholePropertyLists
import WormholeSyscalls

/// The parameters of the command line that concern the office.
extension Invocation {
  /// The side of this process.
  var role: Role {
    get throws(Failure) {
      guard let role = value(.role).flatMap(Role.init) else {
        throw .usage("cannot \(verb.action): --as is missing; give '--as phone' or '--as watch'")
      }
      return role
    }
  }

  var customer: String { value(.customer) ?? "me" }

  /// Opens the container that the command line or the environment names.
  func open(create: Bool = true) throws -> SharedContainer {
    var options = Options()
    options.createsIfMissing = create
    let output = output
    options.log = { entry in
      if entry.level >= .error { output.tell(entry.text) } else { output.explain(entry.text) }
    }
    let set = Processes.environment("WORMHOLE_CONTAINER") ?? ""
    guard let path = value(.container) ?? (set.isEmpty ? nil : set) else {
      throw Failure.usage(
        "cannot choose a container: none is given; use --container DIR, or set WORMHOLE_CONTAINER")
    }
    let container: SharedContainer
    do throws(WormholeError) {
      container = try SharedContainer(directory: path, options: options)
    } catch {
      guard create, error.code == .notFound else { throw error }
      // Not a *no*: the command cannot do what it was asked for.
      var failure = Failure(error)
      failure.status = ExitCode.configuration.rawValue
      throw failure
    }
    // The object is never released: the end of the process closes all its resources, and faster.
    _ = Unmanaged.passRetained(container)
    return container
  }

  func office(create: Bool = true) throws -> BoxOffice {
    BoxOffice(try open(create: create), as: try role)
  }

  /// Returns the books, which are empty if the container does not exist yet.
  func books() throws -> Books {
    let role = try role
    guard let container = try openIfExists() else { return Books() }
    return try BoxOffice(container, as: role).books
  }

  /// Opens the container; nil if it does not exist yet.
  func openIfExists() throws -> SharedContainer? {
    do {
      return try open(create: false)
    } catch let error as WormholeError where error.code == .notFound {
      return nil
    }
  }

  /// Returns the film that an operand names.
  func movie(_ word: String) throws(Refusal) -> Movie {
    guard let id = Movie.ID(word), let movie = Movie.find(id) else {
      throw .unknownMovie(word)
    }
    return movie
  }
}

/// Proposals for completion.
extension Operand.Values {
  /// Proposes films: all films, or only films with or without a ticket of the customer.
  static func movies(_ isPurchased: Bool? = nil) -> Self {
    .found { invocation in
      let books = isPurchased == nil ? nil : try? invocation.open(create: false).books()
      return Movie.all.filter { movie in
        guard let isPurchased, let books else { return true }
        let ticket = books.ticket(for: movie.id, of: invocation.customer)
        return (ticket != nil) == isPurchased
      }.map { Proposal.Word("\($0.id)", $0.title) }
    }
  }
}

extension SharedContainer {
  fileprivate func books() throws -> Books { try BoxOffice(self, as: .phone).books }
}

extension Refusal: FailureTold {
  package var failure: Failure {
    let status: ExitCode = if case .invalidCustomer = self { .usage } else { .no }
    return Failure(status, code, description)
  }
}

extension QRCode.TooLong: FailureTold {
  package var failure: Failure { Failure(.data, "tooLarge", description) }
}

/// The output formats of tickets.
extension Ticket {
  var film: Movie? { Movie.find(movie) }

  var object: [String: PropertyListValue] {
    [
      "ticket": .string(id), "movie": .integer(Int64(movie)), "title": .string(film?.title ?? ""),
      "time": .string(film?.time ?? ""), "customer": .string(customer),
    ]
  }

  /// The number, time and title, separated by tabs.
  var line: String { "\(id)\t\(film?.time ?? "")\t\(film?.title ?? "")" }
}

extension Ticket.Event {
  var object: [String: PropertyListValue] {
    var object: [String: PropertyListValue] = [
      "action": .string(action.rawValue), "as": .string(role.rawValue),
    ]
    object["date"] = DateText.format(date).map { .string($0) }
    return object
  }
}
