internal import WormholeSyscalls

/// A directory for the new file of an access, beside the replaced file.
///
///     .wormhole-<access>.<index>/    mode 0700, of the user who owns the access
///       <container>.<identity>       the marker: an empty file
///       <identity>/                  where the new file is made
///       <identity>.<random>          moved out of <identity>/, and to be removed
///
/// The identity is a random number that the access's entry contains, too. The steps:
///
///     make      make the directory, open it, then make the marker, then `<identity>/`
///     fence     rename each file in `<identity>/` to its parent, and remove the empty directory;
///               repeat if the owner has made another file by then
///     discard   remove the files that were moved out, within the bounds of a `TreeRemoval`
///     end       remove the marker, then the directory, which is empty
///
/// Why nothing changes a file after `fence`: the new file gets into its place by a rename out of
/// `<identity>/`, and nothing can be made in, or renamed out of, a removed directory. A rename of
/// the directory fences nothing, because its owner has it open.
///
/// Why no other directory can be mistaken for a hidden directory. A member of a group can rename
/// another user's directory to any name, and write any path into an entry. But a member cannot
/// write to a directory of mode 0700 that belongs to another user, and cannot make a file that
/// belongs to another user. The directory therefore has to belong to the owner of the entry's file,
/// to be writable for no other user, and to contain the marker. Only its names with the identity as
/// prefix are ever removed.
///
/// Between `make`'s first two steps a member can put another directory of the same user in its
/// place. This is harmless: that directory then contains a marker, but no further name with the
/// identity.
///
/// After a crash: a directory without a marker is empty, as the marker is made first and removed
/// last. An empty directory is removed by a call that fails for a full one; each member who could
/// plant an empty directory could remove it as well. Every step may be repeated, by several
/// processes at once.
final class HiddenDirectory: Sendable {
  /// The properties that prove the maker of a directory.
  struct Maker: Sendable {
    /// The id of the container, escaped.
    let container: String
    /// The identity in the entry; empty in entries of earlier programs, which made no marker.
    let identity: String
    /// The user who owns the entry's file.
    let owner: UInt32

    fileprivate var marker: String { "\(container).\(identity)" }
  }

  /// The reason why a directory cannot be fenced or removed.
  enum Trouble: SystemFailure {
    case system(Errno)
    /// The access could not have made a directory at this path.
    case misplaced
    /// There is no proof of the maker, for the given reason.
    case unproven(String)
    /// The user may not enter the directory.
    case closed
    /// The owner fills the directory as fast as it is emptied.
    case filled
  }

  /// The parent directory, which also contains the replaced file.
  let parent: Descriptor
  private let name: String
  private let directory: Descriptor
  private let maker: Maker

  /// How often a directory is emptied while another process fills it.
  private static let mostTries = 100
  /// How many files are moved out of the directory in one try.
  private static let mostMoved = 1000
  /// The name of the new file.
  static let newName = "new"

  private init(
    _ name: String, in parent: consuming Descriptor, _ maker: Maker
  ) throws(Errno) {
    directory = try parent.open(name, .readOnlyDirectory)
    self.name = name
    self.parent = parent
    self.maker = maker
  }

  /// Opens a directory by a path on which no component is a symbolic link.
  private static func openFolder(_ path: String) throws(Errno) -> Descriptor {
    let root = try Descriptor.open(path: "/", [.path, .directory])
    let rest = String(Substring(path.utf8.drop { $0 == UInt8(ascii: "/") }))
    return try root.open(rest.isEmpty ? "." : rest, [.path, .directory])
  }

  // MARK: Making

  static func make(at path: String, by maker: Maker) throws(Errno) -> HiddenDirectory {
    let place = UserPath(path)
    let parent = try openFolder(place.directory)
    try parent.makeDirectory(place.name, mode: 0o700)
    let hidden = try HiddenDirectory(place.name, in: parent, maker)
    let status = try hidden.directory.status()
    guard status.owner == maker.owner, status.mode & 0o022 == 0 else { throw .notPermitted }
    _ = try hidden.directory.open(maker.marker, .writeOnlyNew, mode: 0o600)
    try hidden.directory.makeDirectory(maker.identity, mode: 0o700)
    return hidden
  }

  /// Returns the path for the new file, in a hidden directory at `path`.
  static func newPath(in path: String, _ maker: Maker) -> String {
    "\(path)/\(maker.identity)/\(newName)"
  }

  /// Opens the directory for new files.
  func openMade() throws(Errno) -> Descriptor {
    try directory.open(maker.identity, .readOnlyDirectory)
  }

  // MARK: Finding

  /// Opens the directory of another access; nil if there is none.
  ///
  /// - Throws: ``Trouble/unproven(_:)`` without proof of the maker.
  static func open(_ path: String, by maker: Maker) throws(Trouble) -> HiddenDirectory? {
    let place = UserPath(path)
    let hidden: HiddenDirectory
    do throws(Errno) {
      hidden = try HiddenDirectory(place.name, in: openFolder(place.directory), maker)
    } catch {
      switch error {
      case .noSuchFile: return nil
      case .tooManyLinks, .notADirectory:
        throw .unproven("its path contains a link or a file instead of a directory")
      case .accessDenied: throw .closed
      default: throw .system(error)
      }
    }
    try hidden.prove()
    return hidden
  }

  private func prove() throws(Trouble) {
    guard !Mutants.has(.noHiddenProof) else { return }
    let status: FileStatus = try Trouble.wrapping { () throws(Errno) in try directory.status() }
    guard status.owner == maker.owner else {
      throw .unproven(
        "the directory belongs to user \(status.owner), and the access to user \(maker.owner)")
    }
    guard status.mode & 0o022 == 0 else {
      throw .unproven("unauthorized users may write to it (mode \(String(status.mode, radix: 8)))")
    }
    let isMarked: Bool = try Trouble.wrapping { () throws(Errno) in try hasMarker() }
    if isMarked { return }
    let files = try Trouble.wrapping { () throws(Errno) in try directory.names(most: 1) }
    guard files.isEmpty else { throw .unproven("the marker of the access is missing") }
  }

  private func hasMarker() throws(Errno) -> Bool {
    guard !maker.identity.isEmpty else { return false }
    let marker = try ignoring(.noSuchFile, directory.status(of: maker.marker))
    return marker?.kind == .regular && marker?.owner == maker.owner
  }

  // MARK: Removing

  /// Prevents files of the directory from replacing the target.
  ///
  /// - Parameter isOver: whether the deadline has passed; fencing is tried once in any case.
  func fence(isOver: () -> Bool) throws(Trouble) {
    for _ in 0..<Self.mostTries {
      let isFenced: Bool = try Trouble.wrapping { () throws(Errno) in try fenceOnce() }
      if isFenced { return }
      if isOver() { break }
      Processes.yield()
    }
    throw .filled
  }

  private func fenceOnce() throws(Errno) -> Bool {
    do throws(Errno) {
      try moveOut(of: openMade())
      if Mutants.has(.emptyOnly) { return true }
      try directory.removeDirectory(maker.identity)
      return true
    } catch {
      if error == .noSuchFile { return true }
      guard error == .directoryNotEmpty || error == .fileExists else { throw error }
      return false
    }
  }

  /// Moves each entry by a single rename: the owner never sees a partly removed directory.
  private func moveOut(of made: consuming Descriptor) throws(Errno) {
    let environment = Environment()
    for child in try made.names(most: Self.mostMoved) {
      let aside = "\(maker.identity).\(environment.randomName())"
      let failure = Errno.of { () throws(Errno) in
        try made.rename(child, to: directory, aside)
      }
      guard let failure, failure != .noSuchFile else { continue }
      // On a full disk there may be no space for another name.
      guard Errno.of({ () throws(Errno) in try made.unlink(child) }) == nil else { throw failure }
    }
  }

  /// Removes the directory with its content; false if a bound was reached first.
  func remove(_ removal: inout TreeRemoval, isOver: () -> Bool) throws(Trouble) -> Bool {
    try fence(isOver: isOver)
    let isEmpty: Bool = try Trouble.wrapping { () throws(Errno) in try discard(&removal) }
    guard isEmpty else { return false }
    try end()
    return true
  }

  private func discard(_ removal: inout TreeRemoval) throws(Errno) -> Bool {
    while true {
      let names = try names(most: 256, where: isMovedOut)
      if names.isEmpty { return true }
      for name in names where try !removal.remove(name, in: directory) { return false }
    }
  }

  /// Returns the names of some files in the directory; none if another process has removed it by
  /// now.
  private func names(
    most: Int, where isWanted: (UnsafePointer<CChar>) -> Bool
  ) throws(Errno) -> [[CChar]] {
    try ignoring(.noSuchFile, directory.names(most: most, where: isWanted)) ?? []
  }

  private func isMovedOut(_ name: UnsafePointer<CChar>) -> Bool {
    if Mutants.has(.noHiddenProof) { return true }
    guard !maker.identity.isEmpty, let name = String(validatingCString: name) else { return false }
    return name.begins(with: maker.identity + ".")
  }

  /// Throws if the directory contains a file that the access did not make.
  func refuseOthers() throws(Trouble) {
    let own = [maker.marker, maker.identity]
    let others: [[CChar]] = try Trouble.wrapping { () throws(Errno) in
      try names(most: 1) { name in
        !isMovedOut(name) && !own.contains { $0 == String(validatingCString: name) }
      }
    }
    guard others.isEmpty else {
      throw .unproven("the directory contains files that the access did not create")
    }
  }

  private func end() throws(Trouble) {
    try refuseOthers()
    if Mutants.has(.emptyOnly) { try? directory.removeDirectory(maker.identity) }
    let marker = maker.marker
    for isMarker in [true, false] {
      let failure = Errno.of { () throws(Errno) in
        if isMarker { try directory.unlink(marker) } else { try parent.removeDirectory(name) }
      }
      if let failure, failure != .noSuchFile { throw .system(failure) }
    }
  }
}
