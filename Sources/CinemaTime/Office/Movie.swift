internal import FoundationEssentials

/// A film, when it is shown, and how many seats there are.
///
/// Two are the same if their numbers are.
public struct Movie: Codable, Identifiable, Sendable {
  /// Its number, which tickets and messages name it by.
  public let id: Int
  /// What it is called.
  public let title: String
  /// Who made it.
  public let director: String
  /// Who plays in it.
  public let actors: [String]
  /// What it is about, in one sentence.
  public let synopsis: String
  /// The name of its poster.
  public let poster: String
  /// When it begins, from 0 to 23.
  public let hour: Int
  /// How many tickets there are, for all together.
  public let seats: Int

  /// When it begins, as in `3:00 PM`.
  ///
  /// Put together here: Foundation would write a narrow space that does not break, which differs
  /// from what is printed on other tickets.
  public var time: String {
    let hour = self.hour % 12
    return "\(hour == 0 ? 12 : hour):00 \(self.hour < 12 ? "AM" : "PM")"
  }

  /// What a ticket's code says.
  public var ticketText: String { "\(title) @ \(time)" }

  /// All that are shown, in the order of their time.
  public static let all: [Movie] = {
    do {
      return try JSONDecoder().decode([Movie].self, from: Data(PackageResources.Movies_json))
        .sorted { ($0.hour, $0.title) < ($1.hour, $1.title) }
    } catch {
      preconditionFailure("Movies.json, which is built in: \(error)")
    }
  }()

  private static let byNumber = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0) })

  /// The film of that number; nil if none is shown.
  public static func find(_ id: Int) -> Movie? { byNumber[id] }
}

extension Movie: Hashable {
  /// Whether both have the same number.
  public static func == (first: Movie, second: Movie) -> Bool { first.id == second.id }

  /// Hashes the number.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// The films that begin at one time.
public struct Showing: Hashable, Identifiable, Sendable {
  /// When, as in `3:00 PM`.
  public let time: String
  /// By title.
  public let movies: [Movie]

  /// The time, of which there is one showing.
  public var id: String { time }

  /// The films in groups: by time, and within a time by title.
  public static func groups(of movies: [Movie]) -> [Showing] {
    Dictionary(grouping: movies, by: \.hour).sorted { $0.key < $1.key }.map { _, movies in
      Showing(time: movies[0].time, movies: movies.sorted { $0.title < $1.title })
    }
  }
}
