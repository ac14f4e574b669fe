package import WormholeSyscalls

/// A copy of a message's file at a path of the user's, which is removed if the message was not
/// handled.
///
/// The copy stays open: a file made later may have the number of a removed one, and no other file
/// has the number of an open one.
package final class HandedCopy: Sendable {
  package let path: String
  private let name: String
  private let file: Descriptor
  let parent: Descriptor

  init(_ file: consuming Descriptor, _ parent: consuming Descriptor, _ path: UserPath) {
    (self.path, name) = (path.path, path.name)
    self.file = file
    self.parent = parent
  }

  /// Removes the copy, unless another file has the name by now.
  package func remove() throws(Errno) {
    try ignoring(.noSuchFile) { () throws(Errno) in
      let named = try parent.status(of: name)
      guard named.isSameFile(as: try file.status()) else { return }
      try parent.unlink(name)
    }
  }
}
