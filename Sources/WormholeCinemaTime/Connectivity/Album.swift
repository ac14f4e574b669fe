public import FoundationEssentials
internal import WormholeSyscalls

/// The ticket images of one side: a directory of its own with one file per film.
public struct Album: Sendable {
  /// The path of the directory.
  public let path: String

  /// Makes the album of a side, beside the container that both sides share.
  public init(of role: Role, beside container: String) {
    // The path is compared as bytes: in Swift, a slash with a combining accent after it is a
    // different character.
    var place = container.utf8[...]
    while place.count > 1, place.last == UInt8(ascii: "/") { place.removeLast() }
    path = "\(Substring(place)).\(role.rawValue)"
  }

  /// Returns the path of a film's image, whether or not the image exists.
  public func path(of movie: Movie.ID) -> String { "\(path)/\(movie).png" }

  /// The films whose images exist; empty if the directory cannot be read.
  public var movies: Set<Movie.ID> { (try? findMovies()) ?? [] }

  /// Returns the films whose images exist; throws if the directory cannot be read.
  func findMovies() throws -> Set<Movie.ID> {
    Set(
      try findNames().compactMap { name in
        // Swift reads numbers with a sign or leading zeros, too.
        Movie.ID(name.dropLast(4)).flatMap { name == "\($0).png" ? $0 : nil }
      })
  }

  /// Returns a film's image; nil if none exists, or if it cannot be read.
  public func image(of movie: Movie.ID) -> Data? { try? readImage(of: movie) }

  /// Returns a film's image; throws if none exists, or if it cannot be read.
  func readImage(of movie: Movie.ID) throws -> Data {
    try Data(contentsOf: URL(filePath: path(of: movie)))
  }

  /// Makes the directory if necessary.
  public func prepare() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Writes an image, which becomes visible as a whole.
  public func store(_ image: PNG, of movie: Movie.ID) throws {
    try prepare()
    try Data(image.bytes).write(to: URL(filePath: path(of: movie)), options: .atomic)
  }

  /// Removes a film's image, if it exists.
  public func remove(_ movie: Movie.ID) throws {
    do {
      try FileManager.default.removeItem(atPath: path(of: movie))
    } catch let error as CocoaError where error.code == .fileNoSuchFile {}
  }

  /// Removes the temporary files of interrupted writes; for the app, before its first write.
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
