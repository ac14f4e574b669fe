package import WormholeSyscalls

/// `bridge/`: the state of the process that carries messages between machines. No other program
/// uses it, and no other user can enter it, in a group's container neither.
extension Container {
  /// The directory of the program that carries messages between machines; nobody else uses it.
  package static let bridgeName = "bridge"

  /// Returns a directory below `bridge/`, made if need be.
  ///
  /// EPERM if a directory on the way belongs to another user, or if others can enter it.
  package func bridge(_ path: [String] = []) throws(Errno) -> OpenDirectory {
    var directory = OpenDirectory(try Self.ownDirectory(Self.bridgeName, in: root))
    for name in path {
      directory = OpenDirectory(try Self.ownDirectory(name, in: directory.descriptor))
    }
    return directory
  }

  private static func ownDirectory(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    try Sharing.tolerating { () throws(Errno) in try parent.makeDirectory(name, mode: 0o700) }
    let directory = try parent.open(name, [.readOnly, .directory])
    let status = try directory.status()
    guard status.owner == Processes.effectiveUser, status.mode & 0o077 == 0 else {
      throw .notPermitted
    }
    return directory
  }

  /// Puts a complete file into a directory, in place of any file with the name.
  ///
  /// - Parameter sync: whether the content is on disk before the name leads to it. To make the name
  ///   durable, sync the directory afterwards.
  package func replace(
    _ name: String, in directory: OpenDirectory, by bytes: [UInt8], sync: Bool
  ) throws(Errno) {
    try replace(name, in: directory.descriptor, by: bytes, sync: sync)
  }

  func replace(
    _ name: String, in directory: borrowing Descriptor, by bytes: [UInt8], sync: Bool
  ) throws(Errno) {
    let failure = bytes.withUnsafeBytes { bytes in
      Errno.of { () throws(Errno) in
        try staging.withFile(bytes, sync: sync) { staged, _ throws(Errno) in
          try staging.directory().descriptor.replace(staged, in: directory, name)
        }
      }
    }
    if let failure { throw failure }
  }

  /// Makes the names in a directory durable.
  package func makeDurable(_ directory: OpenDirectory) throws(Errno) {
    try directory.sync.sync(directory.descriptor)
  }

  /// Reads a file of a directory; nil if there is none, or none that can be used.
  package func read(_ name: String, in directory: OpenDirectory) throws(Errno) -> [UInt8]? {
    do throws(FileReading.Refusal) {
      guard case .sound(let bytes, _) = try reading.read(name, in: directory.descriptor) else {
        return nil
      }
      return bytes
    } catch {
      if case .system(let error) = error { throw error }
      return nil
    }
  }
}
