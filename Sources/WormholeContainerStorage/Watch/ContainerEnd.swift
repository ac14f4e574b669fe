internal import WormholeSyscalls

/// The reason why an open container is no longer the one at its path.
///
/// Changes made through the open instance are then invisible to processes that open the path, and
/// their changes are invisible to it.
package struct ContainerEnd: Sendable, Equatable {
  package enum Reason: Sendable, Equatable {
    /// Its directory, or `container.plist` in it, is gone.
    case removed
    /// It was moved away, and may be open elsewhere.
    case moved
    /// Another container has the path now.
    case replaced
  }

  package let way: Reason
  let path: String

  package func error(_ operation: String, _ subject: String) -> WormholeError {
    let fate =
      switch way {
      case .removed: "was removed"
      case .moved: "was moved away"
      case .replaced: "was removed, and another directory has its path"
      }
    return WormholeError(
      .notAContainer, operation, subject, because: "its container '\(path)' \(fate)",
      hint: "open the container again")
  }
}

extension Container {
  /// The absolute path of the container, whatever the process's working directory; nil if it is
  /// unknown.
  func presentPath() -> String? {
    if path.utf8.first == UInt8(ascii: "/") { return path }
    guard let open = try? Descriptor.open(path: "/proc/self/fd", .readOnlyDirectory),
      let bytes = try? open.readSymbolicLink("\(root.descriptor.rawValue)")
    else { return nil }
    let link = String(decoding: bytes, as: UTF8.self)
    let found = try? Descriptor.status(ofPath: link)
    return found.map(FileIdentity.init) == identity ? link : nil
  }

  /// Returns the end of the container; nil as long as it has its path, or if this cannot be
  /// determined.
  func end(at place: String?) -> ContainerEnd? {
    way(at: place).map { ContainerEnd(way: $0, path: path) }
  }

  /// Returns the end of a container in which a folder is missing, at little cost.
  func endIfRemoved(_ folder: Folder) -> ContainerEnd? {
    guard (try? existingFolder(folder))?.isStale != false, isRemoved else { return nil }
    return ContainerEnd(way: .removed, path: path)
  }

  /// Runs a body that starts a watch, or posts a notice, and gives its error the operation, the
  /// subject, and the end of the container, if that is the cause.
  ///
  /// - Parameter path: the watched path, below the container's directory.
  func watching<Result>(
    _ operation: @autoclosure () -> String, _ subject: String, _ path: @autoclosure () -> String,
    _ body: () throws(Errno) -> Result
  ) throws(WormholeError) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      let end = error == .noSuchFile ? end(at: presentPath()) : nil
      throw end?.error(operation(), subject)
        ?? WormholeError(error, operation(), subject, in: self, path())
    }
  }

  private func way(at place: String?) -> ContainerEnd.Reason? {
    if isRemoved { return .removed }
    if let place {
      do throws(Errno) {
        let found = FileIdentity(try Descriptor.status(ofPath: place))
        if found != identity { return .replaced }
      } catch {
        // The container may have been removed between the two checks.
        if error == .noSuchFile || error == .notADirectory { return isRemoved ? .removed : .moved }
      }
    }
    do throws(Errno) {
      let marker = try root.descriptor.open(ContainerMarker.fileName, .readOnlyNonBlocking)
      let status = try marker.status()
      guard status.kind == .regular, status.size <= 1 << 16 else { return nil }
      let bytes = try marker.readAll(size: status.size)
      // A container with a later epoch is still the same container.
      let found = try? ContainerMarker(bytes, path: path)
      return found.map { $0.id != id } == true ? .replaced : nil
    } catch {
      return error == .noSuchFile || isMarkerGone ? .removed : nil
    }
  }

  /// Whether its directory has no name any more.
  private var isRemoved: Bool { (try? root.descriptor.status())?.links == 0 }

  /// Whether the marker is gone; no file has to be opened for this.
  private var isMarkerGone: Bool {
    Errno.of { () throws(Errno) in _ = try root.descriptor.status(of: ContainerMarker.fileName) }
      == .noSuchFile
  }
}

extension Container {
  /// Reports, once, that the container is no longer the one at its path.
  package func watchEnd(
    _ ended: @escaping @Sendable (ContainerEnd) -> Void
  ) throws(WormholeError) -> NamedWatch {
    try watching("watch", path, "") { () throws(Errno) in
      try NamedWatch(self, [], .selfMoved, ended: ended) { _ in }
    }
  }
}
