internal import WormholeSyscalls

/// Removes files and directories with their content, within bounds.
///
/// Other users may be filling a directory during its removal, so the number of files, the depth and
/// the time are bounded. Symbolic links are removed, not followed.
struct TreeRemoval {
  /// The number of files and directories that may still be removed.
  private var left: Int
  /// Only the owner's directories are entered; nil for all.
  ///
  /// A user can move a directory with a foreign user's private directory inside, but could not
  /// empty the private one. A process that removes files on behalf of a user therefore does not do
  /// that either.
  private let owner: UInt32?
  /// Whether the deadline has passed.
  private let isOver: () -> Bool

  /// The maximum depth of a tree: each level takes a descriptor.
  private static let depth = 64
  /// How many names of a directory are held in memory at once; the directory may have millions.
  private static let batch = 256

  init(most: Int, owner: UInt32?, isOver: @escaping () -> Bool = { false }) {
    left = most
    self.owner = owner
    self.isOver = isOver
  }

  /// Removes the entry with the name; false if a bound was reached first.
  mutating func remove(
    _ name: [CChar], in parent: borrowing Descriptor, depth: Int = TreeRemoval.depth
  ) throws(Errno) -> Bool {
    guard left > 0, !isOver() else { return false }
    left -= 1
    let refusal: Errno
    do throws(Errno) {
      try parent.unlink(name)
      return true
    } catch {
      if error == .noSuchFile { return true }
      guard error == .isADirectory || error == .notPermitted else { throw error }
      refusal = error
    }
    guard depth > 0 else { throw .directoryNotEmpty }
    do throws(Errno) {
      return try removeDirectory(name, in: parent, depth)
    } catch {
      if error == .noSuchFile { return true }
      // A file that this user may not remove.
      throw error == .notADirectory ? refusal : error
    }
  }

  private mutating func removeDirectory(
    _ name: [CChar], in parent: borrowing Descriptor, _ depth: Int
  ) throws(Errno) -> Bool {
    let directory = try parent.open(name, .readOnlyDirectory)
    if let owner, try directory.status().owner != owner {
      try parent.removeDirectory(name)
      return true
    }
    while true {
      for child in try directory.names(most: Self.batch)
      where try !remove(child, in: directory, depth: depth - 1) {
        return false
      }
      do throws(Errno) {
        try parent.removeDirectory(name)
        return true
      } catch {
        // The directory has more names than a batch, or another process has added a name.
        guard error == .directoryNotEmpty || error == .fileExists else { throw error }
        guard left > 0, !isOver() else { return false }
        left -= 1
      }
    }
  }
}
