internal import WormholeSyscalls

/// The directories of a container or a member, each opened at its first use.
///
/// A place is the number of a directory in the owner's order. The state is an array in this order:
/// setting up a dictionary takes longer than reading a file.
struct OpenDirectories: Sendable {
  private let directories: Monitor<[OpenDirectory?]>

  init(count: Int) { directories = Monitor([OpenDirectory?](repeating: nil, count: count)) }

  /// Returns the directory if it is open.
  func known(_ place: Int) -> OpenDirectory? { directories.withLock { $0[place] } }

  /// Returns the open directory, or opens the directory.
  ///
  /// If two callers open a directory at the same time, both receive the same object.
  func directory(
    _ place: Int, _ opening: () throws(Errno) -> Descriptor
  ) throws(Errno) -> OpenDirectory {
    if let open = known(place) { return open }
    let opened = OpenDirectory(try opening())
    return directories.withLock { directories in
      if let other = directories[place] { return other }
      directories[place] = opened
      return opened
    }
  }

  /// Replaces the open directory by the one that has the name now, unless both are the same.
  func replace(_ place: Int, by named: OpenDirectory?) -> OpenDirectory? {
    directories.withLock { directories in
      if let open = directories[place], let named, open.isSame(as: named) { return open }
      directories[place] = named
      return named
    }
  }

  /// Forgets an open directory that another tool has removed; returns whether it was removed.
  func forgetIfStale(_ place: Int) -> Bool {
    directories.withLock { directories in
      guard let open = directories[place], open.isStale else { return false }
      directories[place] = nil
      return true
    }
  }
}
