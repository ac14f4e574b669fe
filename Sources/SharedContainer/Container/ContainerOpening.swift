internal import PropertyLists
internal import Syscalls

/// The steps of opening a container: check the directory, make what is missing, read
/// `container.plist`.
///
/// Any number of processes may do this at once. `container.plist` appears last and complete, under
/// a name that only one of them can give it.
struct ContainerOpening {
  let path: String
  let options: ContainerOptions
  let mayCreate: Bool

  static let markerName = "container.plist"

  func openRoot() throws(WormholeError) -> Descriptor {
    let root = try openOrRefuse()
    let status = try translating { try root.status() }
    try check(status, root)
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
    let place = UserPath(path)
    let parent = try place.openParent([.path, .directory])
    return try options.sharing.ensureBeside(
      place.name, in: parent, Sharing.hiddenName(options.environment))
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
  private func check(
    _ status: FileStatus, _ root: borrowing Descriptor
  ) throws(WormholeError) {
    let user = Processes.effectiveUser
    let forbidden = options.sharing.foreignWriters
    if status.mode & forbidden != 0 || options.sharing == .owner && status.owner != user {
      try checkKind(root)
    }
    if options.sharing == .owner, status.owner != user {
      throw WormholeError(
        .refused, "open container", path,
        because: "it belongs to user \(status.owner), and this is user \(user)",
        hint: "use a directory of your own, or open it for a group")
    }
    if status.mode & forbidden != 0 {
      let others = options.sharing == .owner ? "its group or others" : "others"
      throw WormholeError(
        .refused, "open container", path, because: "\(others) may write to it",
        hint: "chmod \(options.sharing == .owner ? "go-w" : "o-w") '\(path)'")
    }
  }

  /// Says first what it is: whoever has named `/tmp` by mistake is not to change its mode.
  private func checkKind(_ root: borrowing Descriptor) throws(WormholeError) {
    guard let marker = try? openExistingMarker(root) else {
      throw WormholeError(
        .refused, "open container", path,
        because: "it is no container, and others may write to it or have made it",
        hint: "use a new directory, or an empty one of your own that others may not write to")
    }
    // What cannot be read is told of when its turn comes.
    guard let bytes = try? marker.readAll(size: min(marker.status().size, 1 << 16)),
      let content = try? ContainerMarker(bytes, path: path)
    else { return }
    try checkAgreement(content)
  }

  /// What the container is, and what the caller takes it for.
  private func checkAgreement(_ marker: ContainerMarker) throws(WormholeError) {
    guard let sharing = marker.sharing, sharing != options.sharing else { return }
    let isGroups = sharing == .group
    throw WormholeError(
      .refused, "open container", path,
      because: isGroups
        ? "it is shared by a group, and was opened as one user's own"
        : "it is one user's own, and was opened as one that a group shares",
      hint: isGroups
        ? "say that it is a group's, with the option 'sharing' or '--group-shared'"
        : "leave out '--group-shared', or the option 'sharing'; or use another container")
  }

  // MARK: container.plist

  /// Reads it, or makes it.
  ///
  /// No lock is asked for, so that nobody's can keep others out.
  func findMarker(_ root: borrowing Descriptor) throws(WormholeError) -> ContainerMarker {
    var tries = 0
    while true {
      do {
        if let marker = try openExistingMarker(root) {
          let content = try read(marker)
          try checkAgreement(content)
          try mend(root)
          return content
        }
        tries += 1
        // Only a hand that removes it again and again could go on like this.
        guard tries < 100 else { throw Errno.busy }
        try make(root)
      } catch {
        try translating { throw error }
      }
    }
  }

  private func openExistingMarker(_ root: borrowing Descriptor) throws(Errno) -> Descriptor? {
    do throws(Errno) {
      return try root.open(Self.markerName, [.readOnly, .nonBlocking], isGuarded: true)
    } catch {
      if error == .noSuchFile { return nil }
      throw error
    }
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
    guard status.mode & 0o002 == 0 else {
      throw WormholeError(
        .refused, "open container", path, because: "others may write to its \(Self.markerName)",
        hint: "chmod o-w '\(path)/\(Self.markerName)'")
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
      !ours.contains($0) && !$0.begins(with: ".") && $0 != "lost+found"
    }) {
      throw WormholeError(
        .notAContainer, "make a container of", path,
        because: "other files lie in it, '\(foreign)' among them",
        hint: "use an empty or a new directory")
    }
    try mend(root)
    let staging = Staging(try ensureStaging(in: root), options.sharing, options.environment)
    for folder in Container.Folder.allCases where folder != .staging {
      _ = try staging.ensureDirectory(folder.rawValue, in: root)
    }
    let bytes = try ContainerMarker.fresh(options.environment, options.sharing).encoded()
    let failure = bytes.withUnsafeBytes { bytes in
      Errno.of { () throws(Errno) in
        try staging.withFile(bytes, sync: true) { name, _ throws(Errno) in
          try staging.directory().descriptor.publish(name, to: root, Self.markerName)
        }
        try root.sync()
        try Descriptor.syncParent(of: path)
      }
    }
    // Another was faster, which is just as well.
    if let failure, failure != .fileExists { throw failure }
  }

  /// `staging/`, where all else is made.
  func ensureStaging(in root: borrowing Descriptor) throws(Errno) -> Descriptor {
    try options.sharing.ensureBeside(
      Container.Folder.staging.rawValue, in: root, Sharing.hiddenName(options.environment))
  }

  private func mend(_ root: borrowing Descriptor) throws(Errno) {
    guard options.sharing == .group else { return }
    try options.sharing.mend(root, try root.status())
  }
}
