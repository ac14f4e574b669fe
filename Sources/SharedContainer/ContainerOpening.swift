internal import PropertyLists
internal import Syscalls

/// The steps of opening a container: check the directory, make what is missing, take the shared
/// flock on `container.plist`.
///
/// Any number of processes may do this at once. `container.plist` appears last and complete, under
/// a name that only one of them can give it.
struct ContainerOpening {
  let path: String
  let options: ContainerOptions
  let mayCreate: Bool

  static let markerName = "container.plist"

  /// `container.plist`, with the shared flock on it.
  struct OpenMarker: ~Copyable {
    let file: Descriptor
    let content: ContainerMarker
  }

  func openRoot() throws(WormholeError) -> Descriptor {
    let root = try openOrRefuse()
    let status = try translating { try root.status() }
    try check(status)
    return root
  }

  private func openOrRefuse() throws(WormholeError) -> Descriptor {
    do throws(Errno) {
      return try openOrMake()
    } catch {
      throw refusal(of: error)
    }
  }

  /// Gives errors of the system their meaning; those that have one already pass.
  private func translating<Result: ~Copyable>(
    _ body: () throws -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch let error as WormholeError {
      throw error
    } catch let error as Errno {
      throw WormholeError(error, "open container", path)
    } catch {
      throw WormholeError(.system, "open container", path, because: "\(error)")
    }
  }

  private func openOrMake() throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try Descriptor.open(path: path, [.readOnly, .directory])
    } catch {
      guard error == .noSuchFile, mayCreate else { throw error }
    }
    do throws(Errno) {
      try Descriptor.makeDirectory(path: path, mode: 0o700)
    } catch {
      guard error == .fileExists else { throw error }
    }
    let root = try Descriptor.open(path: path, [.readOnly, .directory])
    if options.sharing == .group, try root.status().owner == Processes.effectiveUser {
      try root.setMode(options.sharing.directoryMode)
    }
    return root
  }

  private func refusal(of error: Errno) -> WormholeError {
    switch error {
    case .noSuchFile:
      WormholeError(
        .notFound, "open container", path,
        because: mayCreate ? "the directory it is to lie in does not exist" : "there is none",
        errno: error)
    case .tooManyLinks, .notADirectory:
      WormholeError(
        .refused, "open container", path,
        because: "it is not a directory, or a symbolic link to one",
        hint: "give the path of the directory itself", errno: error)
    default:
      WormholeError(error, "open container", path)
    }
  }

  /// Whoever may write here could plant anything, so only the owner may, or the group if asked.
  private func check(_ status: FileStatus) throws(WormholeError) {
    let user = Processes.effectiveUser
    if options.sharing == .owner, status.owner != user {
      throw WormholeError(
        .refused, "open container", path,
        because: "it belongs to user \(status.owner), and this is user \(user)",
        hint: "use a directory of your own, or open it for a group")
    }
    let forbidden: FileMode = options.sharing == .owner ? 0o022 : 0o002
    if status.mode & forbidden != 0 {
      let others = options.sharing == .owner ? "its group or others" : "others"
      throw WormholeError(
        .refused, "open container", path, because: "\(others) may write to it",
        hint: "chmod \(options.sharing == .owner ? "go-w" : "o-w") '\(path)'")
    }
  }

  // MARK: container.plist

  func openMarker(_ root: borrowing Descriptor) throws(WormholeError) -> OpenMarker {
    let deadline = options.environment.now() + .seconds(5)
    while true {
      do {
        if let marker = try openExistingMarker(root) {
          let content = try read(marker)
          if try marker.tryLock(.shared), try isCurrent(marker, root) {
            return OpenMarker(file: marker, content: content)
          }
          guard options.environment.now() < deadline else {
            throw WormholeError(
              .timedOut, "open container", path,
              because: "somebody holds \(Self.markerName) exclusively")
          }
          Processes.yield()
        } else {
          try make(root)
        }
      } catch {
        try translating { throw error }
      }
    }
  }

  private func openExistingMarker(_ root: borrowing Descriptor) throws(Errno) -> Descriptor? {
    do throws(Errno) {
      return try root.open(Self.markerName, [.readOnly, .nonBlocking])
    } catch {
      if error == .noSuchFile { return nil }
      throw error
    }
  }

  /// Between opening it and locking it, another boot's first process may have replaced it.
  private func isCurrent(
    _ marker: borrowing Descriptor, _ root: borrowing Descriptor
  ) throws(Errno) -> Bool {
    try root.status(of: Self.markerName).isSameFile(as: try marker.status())
  }

  private func read(_ file: borrowing Descriptor) throws -> ContainerMarker {
    let status = try file.status()
    guard status.kind == .regular, status.size <= 1 << 16 else {
      throw WormholeError(
        .refused, "open container", path, because: "\(Self.markerName) is not a small plain file")
    }
    guard options.sharing == .group || status.owner == Processes.effectiveUser else {
      throw WormholeError(
        .refused, "open container", path,
        because: "\(Self.markerName) belongs to user \(status.owner)",
        hint: "look who put it there, and move it away")
    }
    let bytes = try file.readAll(size: status.size)
    return try ContainerMarker(bytes, path: path)
  }

  private func make(_ root: borrowing Descriptor) throws {
    guard mayCreate else {
      throw WormholeError(
        .notAContainer, "open container", path, because: "it has no \(Self.markerName)")
    }
    let ours = Set(Container.Folder.allCases.map(\.rawValue) + [Self.markerName])
    if let foreign = try root.names().first(where: {
      !ours.contains($0) && !$0.hasPrefix(".") && $0 != "lost+found"
    }) {
      throw WormholeError(
        .notAContainer, "make a container of", path,
        because: "other files lie in it, '\(foreign)' among them",
        hint: "use an empty or a new directory")
    }
    for folder in Container.Folder.allCases { _ = try ensureDirectory(folder, in: root) }
    let staging = Staging(
      try ensureDirectory(.staging, in: root), options.sharing, options.environment)
    let bytes = try ContainerMarker.fresh(options.environment).encoded()
    let failure = bytes.withUnsafeBytes { bytes in
      Errno.of { () throws(Errno) in
        try staging.withFile(bytes, sync: true) { name, file throws(Errno) in
          // Once it is visible, an exclusive lock on it would keep everybody out. A sweeper that
          // comes between the two locks makes this begin again.
          guard try file.tryLock(.shared) else { throw .noSuchFile }
          try staging.directory.publish(name, to: root, Self.markerName)
        }
        try root.sync()
        try Descriptor.syncParent(of: path)
      }
    }
    // Another was faster, which is just as well.
    if let failure, failure != .fileExists { throw failure }
  }

  func ensureDirectory(
    _ folder: Container.Folder, in root: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let name = folder.rawValue
    do throws(Errno) {
      return try root.open(name, [.readOnly, .directory])
    } catch {
      guard error == .noSuchFile else { throw error }
    }
    do throws(Errno) {
      try root.makeDirectory(name, mode: 0o700)
    } catch {
      guard error == .fileExists else { throw error }
    }
    let directory = try root.open(name, [.readOnly, .directory])
    if options.sharing == .group, try directory.status().owner == Processes.effectiveUser {
      try directory.setMode(options.sharing.directoryMode)
    }
    return directory
  }
}
