internal import Synchronization
package import WormholeSyscalls

/// An open directory, shared by several callers, and open as long as any caller needs it.
package final class OpenDirectory: Sendable {
  package let descriptor: Descriptor
  let sync = DirectorySync()
  /// Whether its name in the parent directory was synced since the directory was opened.
  let isNameDurable = Atomic<Bool>(false)

  package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Whether the directory has been removed.
  package var isStale: Bool { (try? descriptor.status().links) == 0 }

  /// Whether both are the same directory, whatever their names.
  func isSame(as other: OpenDirectory) -> Bool {
    guard let (own, its) = try? (descriptor.status(), other.descriptor.status()) else {
      return false
    }
    return own.isSameFile(as: its)
  }

  /// Returns a subdirectory; nil if there is none, or if the name leads to anything else.
  func directory(_ name: String, _ sharing: Sharing) throws(Errno) -> OpenDirectory? {
    try descriptor.directory(name, sharing)
  }
}

extension Descriptor {
  /// Returns a subdirectory; nil if there is none, or if the name leads to anything else.
  func directory(
    _ name: String, _ sharing: Sharing
  ) throws(Errno) -> OpenDirectory? {
    try ignoring([.noSuchFile, .notADirectory, .tooManyLinks]) { () throws(Errno) in
      OpenDirectory(try sharing.openExisting(name, in: self))
    }
  }
}
