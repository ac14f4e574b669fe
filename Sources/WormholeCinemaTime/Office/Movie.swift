internal import FoundationEssentials

/// A film, its time and its number of seats.
///
/// Two values are the same film if their numbers are equal.
public struct Movie: Codable, Identifiable, Sendable {
  /// The film's number, by which tickets and messages name the film.
  public let id: Int
  /// The film's title.
  public let title: String
  /// The film's director.
  public let director: String
  /// The actors.
  public let actors: [String]
  /// The plot, in one sentence.
  public let synopsis: String
  /// The name of the film's poster.
  public let poster: String
  /// The hour of its beginning, from 0 to 23.
  public let hour: Int
  /// The number of tickets for all customers together.
  public let seats: Int

  /// The time of its beginning, as in `3:00 PM`.
  ///
  /// The text is assembled here: Foundation would write a narrow no-break space, which differs from
  /// the text that is printed on other tickets.
  public var time: String {
    let hour = self.hour % 12
    return "\(hour == 0 ? 12 : hour):00 \(self.hour < 12 ? "AM" : "PM")"
  }

  /// The text of a ticket's code.
  public var ticketText: String { "\(title) @ \(time)" }

  /// All films of the programme, in the order of their time.
  public static let all: [Movie] = {
    do {
      return try JSONDecoder().decode([Movie].self, from: Data(PackageResources.Movies_json))
        .sorted { ($0.hour, $0.title) < ($1.hour, $1.title) }
    } catch {
      preconditionFailure("Movies.json, which is built in: \(error)")
    }
  }()

  private static let byNumber = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0) })

  /// Returns the film of a number; nil if no film of the programme has the number.
  public static func find(_ id: Int) -> Movie? { byNumber[id] }
}

extension Movie: Hashable {
  /// Whether both films have the same number.
  public static func == (first: Movie, second: Movie) -> Bool { first.id == second.id }

  /// Hashes the number.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// The films with the same time of beginning.
public struct Showing: Hashable, Identifiable, Sendable {
  /// The time, as in `3:00 PM`.
  public let time: String
  /// The films, by title.
  public let movies: [Movie]

  /// The time, which identifies the showing.
  public var id: String { time }

  /// Groups films: by time, and within a time by title.
  public static func groups(of movies: [Movie]) -> [Showing] {
    Dictionary(grouping: movies, by: \.hour).sorted { $0.key < $1.key }.map { _, movies in
      Showing(time: movies[0].time, movies: movies.sorted { $0.title < $1.title })
    }
  }
}
