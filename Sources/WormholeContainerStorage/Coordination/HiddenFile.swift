internal import WormholeSyscalls

/// The new content of a file that an access replaces: `new`, in a ``HiddenDirectory`` beside the
/// file.
///
/// The directory is made before the access runs. An overtaking process fences the directory first:
/// an overtaken access then changes nothing.
final class HiddenFile: Sendable {
  private let hidden: HiddenDirectory
  private let target: String
  private let directory: Descriptor
  /// The path for the new file.
  let path: String

  /// Returns the path of the directory before it exists.
  static func path(beside target: AccessPath, _ name: AccessName, _ index: Int) -> String {
    UserPath(target.text).parent + prefix(of: name) + "\(index)"
  }

  private static func prefix(of name: AccessName) -> String { ".wormhole-\(name.text)." }

  /// Whether an access of this name and claim can have made a hidden directory at a path: in the
  /// parent directory of a path with a write claim.
  static func isPath(_ path: String, of name: AccessName, _ claim: AccessClaim) -> Bool {
    let (place, prefix) = (UserPath(path), prefix(of: name))
    guard place.name.begins(with: prefix) else { return false }
    let digits = place.name.dropFirst(prefix.count)
    guard let index = Int(digits), "\(index)" == digits, index >= 0 else { return false }
    return claim.parts.contains { part in
      part.writes && UserPath(part.path.text).parent.utf8.elementsEqual(place.parent.utf8)
    }
  }

  init(
    beside target: AccessPath, at path: String, by maker: HiddenDirectory.Maker
  ) throws(Errno) {
    hidden = try HiddenDirectory.make(at: path, by: maker)
    directory = try hidden.openMade()
    self.target = UserPath(target.text).name
    self.path = HiddenDirectory.newPath(in: path, maker)
  }

  enum ExchangeOutcome { case exchanged, superseded, nothingMade }

  /// Replaces the old file by the new one.
  func exchange() throws(Errno) -> ExchangeOutcome {
    do throws(Errno) {
      try put()
      return .exchanged
    } catch {
      guard error == .noSuchFile else { throw error }
      return try directory.status().links == 0 ? .superseded : .nothingMade
    }
  }

  private func put() throws(Errno) {
    do throws(Errno) {
      try directory.rename(HiddenDirectory.newName, to: hidden.parent, target, .exchanging)
    } catch {
      if error == .noSuchFile { return try putFirst() }
      guard error.meansUnsupportedRename else { throw error }
      try directory.rename(HiddenDirectory.newName, to: hidden.parent, target)
    }
  }

  /// The old file is missing, or the new one.
  private func putFirst() throws(Errno) {
    do throws(Errno) {
      try directory.rename(HiddenDirectory.newName, to: hidden.parent, target, .notReplacing)
    } catch {
      // A process that does not coordinate has made a file in the meantime.
      guard error == .fileExists || error.meansUnsupportedRename else { throw error }
      try directory.rename(HiddenDirectory.newName, to: hidden.parent, target)
    }
  }

  /// Removes the directory, with the previous file; false if the previous file is a folder with too
  /// many entries for a removal during which other processes wait.
  func remove() throws(HiddenDirectory.Trouble) -> Bool {
    var removal = TreeRemoval(most: Self.mostRemoved, owner: nil)
    return try hidden.remove(&removal) { false }
  }

  private static let mostRemoved = 1000
}
