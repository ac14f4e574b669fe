internal import SharedContainer
internal import Syscalls
internal import Wormhole

/// The phone's directories for its watches: `watches/<watch>/` in the container, for whatever an
/// app keeps for one watch alone.
extension Pairing {
  /// The path of a watch's directory, which is made if need be; nil if the watch is not paired, or
  /// has no app.
  ///
  /// It goes, with all that is in it, when the watch is unpaired or its app uninstalled.
  public func directory(of watch: String) throws -> String? {
    guard try state.watches[watch]?.isAppInstalled == true else { return nil }
    let name = try Container.escape(watch)
    do throws(Errno) {
      let all = try Self.make("watches", in: hole.container.root)
      _ = try Self.make(name, in: all)
    } catch {
      throw WormholeError(error, "make directory for watch", watch)
    }
    return "\(hole.container.path)/watches/\(name)"
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

  func removeDirectory(of watch: String) throws(WormholeError) {
    let name = try Container.escape(watch)
    do throws(Errno) {
      let all = try hole.container.root.open("watches", [.readOnly, .directory])
      try Self.remove(name, from: all, depth: 0)
    } catch {
      guard error != .noSuchFile else { return }
      throw WormholeError(error, "remove directory of watch", watch)
    }
  }

  /// Through no symbolic link, and into no depth that nobody has use for.
  private static func remove(
    _ name: String, from directory: borrowing Descriptor, depth: Int
  ) throws(Errno) {
    guard depth < 64 else { throw .nameTooLong }
    if try directory.status(of: name).kind == .directory {
      let inside = try directory.open(name, [.readOnly, .directory])
      for name in try inside.names() { try remove(name, from: inside, depth: depth + 1) }
      try directory.removeDirectory(name)
    } else {
      try directory.unlink(name)
    }
  }
}
