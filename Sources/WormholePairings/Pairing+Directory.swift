internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The phone's directories for its watches: `watches/<watch>/<number>/` in the container, for files
/// that an app stores for one watch alone.
///
/// The number is new with each pairing and each installation. If a process dies between the change
/// and the removal of the old directory, the old directory stays, but no app finds it. If a process
/// is suspended for long in this interval, it removes nothing of a later pairing.
extension Pairing {
  /// Returns the path of a watch's directory, which is created if necessary; nil if the watch is
  /// not paired, or has no app.
  ///
  /// The directory and its content are removed when the watch is unpaired or its app uninstalled.
  public func directory(of watch: String) throws -> String? {
    let name = try Container.escape(watch)
    var attempts = 10
    while let number = try currentDirectory(of: watch) {
      attempts -= 1
      do throws(WormholeError) {
        try naming("create a directory for watch", watch) { () throws(Errno) in
          let all = try Self.make("watches", in: container.storage.root.descriptor)
          let own = try Self.make(name, in: all)
          _ = try Self.make(number, in: own)
        }
      } catch {
        // Another process has removed the watch's directory between two of the calls.
        guard error.code == .notFound, attempts > 0 else { throw error }
        continue
      }
      // A removal that follows this reading finds the new directory; an earlier removal may not.
      if try currentDirectory(of: watch) == number {
        return "\(container.storage.path)/watches/\(name)/\(number)"
      }
      try removeOldDirectories(of: watch)
    }
    return nil
  }

  private func currentDirectory(of watch: String) throws(WormholeError) -> String? {
    guard let found = try state.watches[watch], found.isAppInstalled else { return nil }
    return "\(found.directory)"
  }

  private static func make(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    try ignoring(.fileExists, directory.makeDirectory(name, mode: 0o700))
    return try directory.open(name, .readOnlyDirectory)
  }

  /// Removes a watch's directories, except the directory of the current pairing.
  func removeOldDirectories(of watch: String) throws(WormholeError) {
    let name = try Container.escape(watch)
    do {
      let all = try container.storage.root.descriptor.open("watches", .readOnlyDirectory)
      let own = try all.open(name, .readOnlyDirectory)
      guard try isPrivate(all), try isPrivate(own) else { throw Errno.notPermitted }
      // List first: a directory that is made later is not removed.
      let names = try own.names()
      let current = try currentDirectory(of: watch)
      for name in names where name != current { try Self.remove(name, from: own) }
      if current == nil { try? all.removeDirectory(name) }
    } catch let error as WormholeError {
      throw error
    } catch {
      let error = error as! Errno  // The calls throw only these two types.
      guard error != .noSuchFile else { return }
      throw WormholeError(error, "remove the directories of watch", watch)
    }
  }

  /// Whether a directory is as it is made here: in a group's container any member may have moved
  /// another one to its place, but none that other members cannot write to.
  private func isPrivate(_ directory: borrowing Descriptor) throws(Errno) -> Bool {
    guard container.storage.options.sharing == .group else { return true }
    let status = try directory.status()
    return status.owner == Processes.effectiveUser && status.mode & 0o077 == 0
  }

  /// Through no symbolic link, and into no depth that nobody has use for.
  ///
  /// If another process has removed the name first, the call succeeds.
  private static func remove(
    _ name: String, from directory: borrowing Descriptor
  ) throws(Errno) {
    try ignoring(.noSuchFile) { () throws(Errno) in
      do throws(Errno) {
        try directory.unlink(name)
      } catch {
        guard error == .isADirectory || error == .notPermitted else { throw error }
        try removeTree(name, in: directory, depth: 64)
      }
    }
  }
}
