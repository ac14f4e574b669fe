internal import WormholeSyscalls

/// The directory of a container's accesses, with the directories for each state, all held open.
///
/// Calls go through the open directories, and follow no link that a member of the group puts in
/// place of a directory. A process compares the open directories with the named ones while it holds
/// the lock of arrivals, when it enters, and when it lists.
final class AccessHome: Sendable {
  let descriptor: Descriptor
  private let sharing: Sharing
  private let places = Monitor([Place?](repeating: nil, count: AccessPlace.allCases.count))

  private struct Place {
    let directory: OpenDirectory
    let identity: FileIdentity
  }

  init(_ descriptor: consuming Descriptor, _ sharing: Sharing) {
    self.descriptor = descriptor
    self.sharing = sharing
  }

  /// Opens a subdirectory, which must have the mode of the container's own directories.
  func open(_ name: String) throws(Errno) -> Descriptor {
    try sharing.openExisting(name, in: descriptor)
  }

  /// Returns the directory of a state; opened once.
  func folder(_ place: AccessPlace) throws(Errno) -> OpenDirectory {
    if let held = places.withLock({ $0[place.rawValue] }) { return held.directory }
    let opened = OpenDirectory(try open(place.name))
    return try hold(opened, as: place)
  }

  /// Opens the present directory of the state's name, and replaces the held one.
  ///
  /// - Returns: a directory object from which nothing was read: some file systems keep reporting
  ///   the content from when the directory was opened.
  func reopen(_ place: AccessPlace) throws(Errno) -> OpenDirectory {
    let opened = OpenDirectory(try open(place.name))
    _ = try hold(opened, as: place)
    return opened
  }

  /// Whether the held directory still has its name.
  func isCurrent(_ place: AccessPlace) throws(Errno) -> Bool {
    guard let held = places.withLock({ $0[place.rawValue] }) else { return true }
    return try ignoring(
      .noSuchFile, FileIdentity(descriptor.status(of: place.name)) == held.identity) ?? false
  }

  /// Holds a directory in place of an earlier one, unless both are the same.
  func hold(
    _ opened: OpenDirectory, as place: AccessPlace
  ) throws(Errno) -> OpenDirectory {
    let identity = FileIdentity(try opened.descriptor.status())
    return places.withLock { places in
      if let held = places[place.rawValue], held.identity == identity { return held.directory }
      places[place.rawValue] = Place(directory: opened, identity: identity)
      return opened
    }
  }
}
