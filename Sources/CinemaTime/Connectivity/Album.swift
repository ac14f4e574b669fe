public import FoundationEssentials
internal import Syscalls

/// The images of tickets that one side has: a directory of its own with a file a film.
public struct Album: Sendable {
  /// Where they lie.
  public let path: String

  /// The album of one of the sides, beside the container that both share.
  public init(of role: Role, beside container: String) {
    // As bytes: with an accent after it a slash is another letter to Swift.
    var place = container.utf8[...]
    while place.count > 1, place.last == UInt8(ascii: "/") { place.removeLast() }
    path = "\(Substring(place)).\(role.rawValue)"
  }

  /// Where a film's image lies, if there is one.
  public func path(of movie: Movie.ID) -> String { "\(path)/\(movie).png" }

  /// The films that there are images of; none if nobody can tell.
  public var movies: Set<Movie.ID> { (try? findMovies()) ?? [] }

  /// The same; throws if nobody can tell.
  func findMovies() throws -> Set<Movie.ID> {
    Set(try findNames().filter { $0.ends(with: ".png") }.compactMap { Movie.ID($0.dropLast(4)) })
  }

  /// A film's image; nil if there is none.
  public func image(of movie: Movie.ID) -> Data? {
    try? Data(contentsOf: URL(filePath: path(of: movie)))
  }

  /// Makes the directory if need be.
  public func prepare() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Writes an image; it appears whole.
  public func store(_ image: PNG, of movie: Movie.ID) throws {
    try prepare()
    try Data(image.bytes).write(to: URL(filePath: path(of: movie)), options: .atomic)
  }

  /// Removes a film's image, if there is one.
  public func remove(_ movie: Movie.ID) throws {
    do {
      try FileManager.default.removeItem(atPath: path(of: movie))
    } catch let error as CocoaError where error.code == .fileNoSuchFile {}
  }

  /// Removes what is left of writing that was cut short; for the app, before it writes.
  public func sweep() {
    for name in (try? findNames()) ?? [] where name.begins(with: ".") {
      try? FileManager.default.removeItem(atPath: "\(path)/\(name)")
    }
  }

  private func findNames() throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: path)
    } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
      return []
    }
  }
}
