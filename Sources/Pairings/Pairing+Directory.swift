internal import SharedContainer
internal import Syscalls
internal import Wormhole

/// The phone's directories for its watches: `watches/<watch>/<number>/` in the container, for
/// whatever an app keeps for one watch alone.
///
/// The number is another one with each pairing and each installation. So whoever dies between the
/// change and the removal of what was there leaves something that nobody finds, and whoever stands
/// there for long removes nothing of a pairing that has come since.
extension Pairing {
  /// The path of a watch's directory, which is made if need be; nil if the watch is not paired, or
  /// has no app.
  ///
  /// It goes, with all that is in it, when the watch is unpaired or its app uninstalled.
  public func directory(of watch: String) throws -> String? {
    guard let number = try currentDirectory(of: watch) else { return nil }
    let name = try Container.escape(watch)
    do throws(Errno) {
      let all = try Self.make("watches", in: hole.container.root)
      let own = try Self.make(name, in: all)
      _ = try Self.make(number, in: own)
    } catch {
      throw WormholeError(error, "make directory for watch", watch)
    }
    return "\(hole.container.path)/watches/\(name)/\(number)"
  }

  private func currentDirectory(of watch: String) throws(WormholeError) -> String? {
    guard let found = try state.watches[watch], found.isAppInstalled else { return nil }
    return "\(found.directory)"
  }

  private static func make(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    do throws(Errno) {
      try directory.makeDirectory(name, mode: 0o700)
    } catch {
      guard error == .fileExists else { throw error }
    }
    return try directory.open(name, [.readOnly, .directory])
  }

  /// Removes what a watch has there, but for what belongs to the pairing that there is.
  func removeOldDirectories(of watch: String) throws(WormholeError) {
    let name = try Container.escape(watch)
    do {
      let all = try hole.container.root.open("watches", [.readOnly, .directory])
      let own = try all.open(name, [.readOnly, .directory])
      // In this order: what comes later is not among them.
      let names = try own.names()
      let current = try currentDirectory(of: watch)
      for name in names where name != current { try Self.remove(name, from: own) }
      if current == nil { try? all.removeDirectory(name) }
    } catch let error as WormholeError {
      throw error
    } catch {
      let error = error as! Errno  // Only these two are thrown.
      guard error != .noSuchFile else { return }
      throw WormholeError(error, "remove directory of watch", watch)
    }
  }

  /// Through no symbolic link, and into no depth that nobody has use for.
  ///
  /// What somebody else has removed meanwhile is gone.
  private static func remove(
    _ name: String, from directory: borrowing Descriptor
  ) throws(Errno) {
    do throws(Errno) {
      do throws(Errno) {
        try directory.unlink(name)
      } catch {
        guard error == .isADirectory || error == .notPermitted else { throw error }
        try removeTree(name, in: directory, depth: 64)
      }
    } catch {
      if error != .noSuchFile { throw error }
    }
  }
}
