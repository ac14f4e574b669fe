internal import Syscalls

/// Why a container that is open is no longer the one at its path.
///
/// What is read and changed through it then, nobody sees who opens it there.
package struct ContainerEnd: Sendable, Equatable {
  package enum Way: Sendable, Equatable {
    /// Its directory, or `container.plist` in it, is no longer there.
    case removed
    /// It was moved away, and may be open elsewhere.
    case moved
    /// Another one is there now.
    case replaced
  }

  package let way: Way
  let path: String

  package func error(_ operation: String, _ subject: String) -> WormholeError {
    let fate =
      switch way {
      case .removed: "was removed"
      case .moved: "was moved away"
      case .replaced: "was removed, and another one has its path"
      }
    return WormholeError(
      .notAContainer, operation, subject, because: "its container '\(path)' \(fate)",
      hint: "open it anew")
  }
}

extension Container {
  /// Where it can be looked for whatever directory the process goes to; nil if that is not known.
  func place() -> String? {
    if path.utf8.first == UInt8(ascii: "/") { return path }
    guard let open = try? Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory]),
      let bytes = try? open.readSymbolicLink("\(root.rawValue)")
    else { return nil }
    let link = String(decoding: bytes, as: UTF8.self)
    let found = try? Descriptor.status(ofPath: link)
    return found.map(FileIdentity.init) == identity ? link : nil
  }

  /// How it has ended; nil as long as it is the container at its place, or if nobody can tell.
  func end(at place: String?) -> ContainerEnd? {
    way(at: place).map { ContainerEnd(way: $0, path: path) }
  }

  /// The same for one that was seen not to have what was looked for, at little cost.
  func endIfRemoved(_ folder: Folder) -> ContainerEnd? {
    guard (try? existingFolder(folder))?.isStale != false, isRemoved else { return nil }
    return ContainerEnd(way: .removed, path: path)
  }

  /// What is said of a watch that could not begin.
  func watchError(_ error: Errno, _ operation: String, _ subject: String) -> WormholeError {
    let end = error == .noSuchFile ? end(at: place()) : nil
    return end?.error(operation, subject) ?? WormholeError(error, operation, subject)
  }

  private func way(at place: String?) -> ContainerEnd.Way? {
    if isRemoved { return .removed }
    if let place {
      do throws(Errno) {
        let found = FileIdentity(try Descriptor.status(ofPath: place))
        if found != identity { return .replaced }
      } catch {
        // Somebody may have removed it between the two looks.
        if error == .noSuchFile || error == .notADirectory { return isRemoved ? .removed : .moved }
      }
    }
    do throws(Errno) {
      let marker = try root.open(ContainerOpening.markerName, [.readOnly, .nonBlocking])
      let status = try marker.status()
      guard status.kind == .regular, status.size <= 1 << 16 else { return nil }
      let bytes = try marker.readAll(size: status.size)
      // A later epoch is the same container.
      let found = try? ContainerMarker(bytes, path: path)
      return found.map { $0.id != id } == true ? .replaced : nil
    } catch {
      return error == .noSuchFile || isMarkerGone ? .removed : nil
    }
  }

  /// Whether its directory has no name any more.
  private var isRemoved: Bool { (try? root.status())?.links == 0 }

  /// Whether its marker is gone; for this nothing has to be opened.
  private var isMarkerGone: Bool {
    Errno.of { () throws(Errno) in _ = try root.status(of: ContainerOpening.markerName) }
      == .noSuchFile
  }
}

extension Container {
  /// Tells, once, that the container is no longer the one at its path.
  package func watchEnd(
    _ ended: @escaping @Sendable (ContainerEnd) -> Void
  ) throws(WormholeError) -> NamedWatch {
    do throws(Errno) {
      return try NamedWatch(self, [], .selfMoved, ended: ended) { _ in }
    } catch {
      throw watchError(error, "watch", path)
    }
  }
}
