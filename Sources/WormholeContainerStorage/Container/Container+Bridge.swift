internal import WormholePropertyLists
package import WormholeSyscalls

/// `bridge/`: the state of the process that carries messages between machines.
///
/// No other program uses the directory, and no other user can enter it, not even in a group's
/// container.
///
/// Each member of a group may give another user's private directory this name. So the directory is
/// made with a mark, a file that names the container, and is not used without it.
extension Container {
  package static let bridgeName = "bridge"
  static let bridgeMarkName = "mark.plist"

  /// Returns a directory below `bridge/`, made if need be.
  ///
  /// EPERM if a directory on the way belongs to another user, if others can enter it, or if
  /// `bridge/` was not made for this container.
  package func bridge(_ path: [String] = []) throws(Errno) -> OpenDirectory {
    var directory = try markedBridge()
    for name in path {
      let parent = directory
      try Sharing.tolerating { () throws(Errno) in
        try parent.descriptor.makeDirectory(name, mode: 0o700)
      }
      directory = OpenDirectory(try Self.openOwn(name, in: parent.descriptor))
    }
    return directory
  }

  package static let bridgeLockName = "lock"

  /// Whether a process carries between this container and other machines now.
  ///
  /// It is taken for granted where this process may not look: in the container of a group, the
  /// directory belongs to the bridge's user.
  package var isCarried: Bool {
    get throws(Errno) {
      do throws(Errno) {
        let directory = try Self.openOwn(Self.bridgeName, in: root.descriptor)
        return try directory.open(Self.bridgeLockName, [.readOnly]).isPresenceLocked()
      } catch {
        if error == .accessDenied || error == .notPermitted { return true }
        guard error == .noSuchFile else { throw error }
        return false
      }
    }
  }

  /// Whether a bridge has ever been started for the container.
  package var hasBridge: Bool {
    get throws(WormholeError) {
      try naming(
        "inspect", Self.bridgeName,
        ignoring(.noSuchFile, root.descriptor.status(of: Self.bridgeName)) != nil)
    }
  }

  private func markedBridge() throws(Errno) -> OpenDirectory {
    for _ in 0..<100 {
      do throws(Errno) {
        let directory = OpenDirectory(try Self.openOwn(Self.bridgeName, in: root.descriptor))
        guard try isBridge(directory) || Mutants.has(.trustAnyBridge) else { throw .notPermitted }
        return directory
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      let mark = PropertyListValue.dictionary(["container": .string(id)])
      guard let bytes = try? BinaryEncoder().encode(mark) else { throw .invalidArgument }
      try Sharing.tolerating { () throws(Errno) in
        try staging.makeDirectory(Self.bridgeName, in: root.descriptor, isPrivate: true) {
          directory throws(Errno) in
          let file = try directory.open(
            Self.bridgeMarkName, .writeOnlyNew, mode: 0o600)
          try file.writeFully(bytes)
          try file.sync()
        }
      }
    }
    throw .busy
  }

  /// Whether the directory was made for this container.
  func isBridge(_ directory: OpenDirectory) throws(Errno) -> Bool {
    let bytes = try read(Self.bridgeMarkName, in: directory)
    return bytes.flatMap { try? BinaryPropertyList.decode($0)["container"] }?.stringValue == id
  }

  private static func openOwn(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let directory = try parent.open(name, .readOnlyDirectory)
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
    _ name: String, in directory: borrowing Descriptor, by bytes: [UInt8], sync: Bool
  ) throws(Errno) {
    try staging.withFile(bytes, sync: sync) { staged, _ throws(Errno) in
      try staging.directory().descriptor.replace(staged, in: directory, name)
    }
  }

  /// Makes the names in a directory durable.
  package func makeDurable(_ directory: OpenDirectory) throws(Errno) {
    try directory.sync.sync(directory.descriptor)
  }

  /// Reads a file of a directory; nil if there is none, or none that can be used.
  package func read(_ name: String, in directory: OpenDirectory) throws(Errno) -> [UInt8]? {
    guard case .sound(let bytes, _)? = try reader.readUsable(name, in: directory.descriptor) else {
      return nil
    }
    return bytes
  }
}
