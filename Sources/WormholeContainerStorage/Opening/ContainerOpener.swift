internal import WormholePropertyLists
internal import WormholeSyscalls

/// The steps of opening a container: check the directory, make missing parts, read
/// `container.plist`.
///
/// Any number of processes may do this at once. `container.plist` appears last and complete, under
/// a name that only a single process can give it.
struct ContainerOpener {
  let path: String
  let options: ContainerOptions
  let createsIfMissing: Bool

  func openRoot() throws(WormholeError) -> Descriptor {
    let root = try openOrRefuse()
    let status = try naming("open container", path, root.status())
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

  private func openOrMake() throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try Descriptor.open(path: path, .readOnlyDirectory)
    } catch {
      guard error == .noSuchFile, createsIfMissing else { throw error }
    }
    let place = UserPath(path)
    let parent = try place.openParent([.path, .directory])
    return try options.sharing.ensureBeside(place.name, in: parent, options.environment)
  }

  private func refusal(of error: Errno) -> WormholeError {
    switch error {
    case .noSuchFile:
      WormholeError(
        .notFound, "open container", path,
        because: createsIfMissing
          ? "its parent directory does not exist" : "the directory does not exist",
        errno: error)
    case .tooManyLinks, .notADirectory:
      refused(
        because: "the path is a symbolic link, or not a directory",
        hint: "give the path of the directory itself", errno: error)
    case .accessDenied, .notPermitted:
      (try? Descriptor.status(ofPath: path, following: false))
        .flatMap { options.sharing.complaint(about: $0, path) }
        .map { complaint in
          refused(
            because: complaint.reason, hint: complaint.hint,
            errno: error)
        } ?? WormholeError(error, "open container", path)
    default:
      WormholeError(error, "open container", path)
    }
  }

  private func refused(
    because reason: String, hint: String?, errno: Errno? = nil
  ) -> WormholeError {
    WormholeError(.refused, "open container", path, because: reason, hint: hint, errno: errno)
  }

  /// A user who may write here could plant anything, so only the owner may, or the group if
  /// requested.
  private func check(
    _ status: FileStatus, _ root: borrowing Descriptor
  ) throws(WormholeError) {
    let user = Processes.effectiveUser
    let forbidden = options.sharing.foreignWriters
    if status.mode & forbidden != 0 || options.sharing == .owner && status.owner != user {
      try checkKind(root)
    }
    if options.sharing == .owner, status.owner != user {
      throw refused(
        because: "the directory belongs to user \(status.owner), not to user \(user)",
        hint: "use a directory of user \(user), or open the container for a group")
    }
    if status.mode & forbidden != 0 {
      let others = options.sharing == .owner ? "its group or all users" : "all users"
      throw refused(
        because: "\(others) may write to the directory",
        hint: "chmod \(options.sharing.withoutForeignWriters) '\(path)'")
    }
    guard let complaint = options.sharing.complaint(about: status, path) else { return }
    // A single user's own container must not be opened to a group.
    if let marker = existingContent(root) { try checkAgreement(marker) }
    if Mutants.has(.mendFound), status.owner == user,
      (try? root.setMode(status.mode | options.sharing.directoryMode)) != nil
    {
      return
    }
    throw refused(because: complaint.reason, hint: complaint.hint)
  }

  /// Reports a directory that is not a container first: a user who named `/tmp` by mistake must not
  /// get the advice to change its mode.
  private func checkKind(_ root: borrowing Descriptor) throws(WormholeError) {
    guard let marker = try? openExistingMarker(root) else {
      throw refused(
        because: "the directory is not a container, and is owned or writable by another user",
        hint: "use a new directory, or an empty directory that only its owner may write to")
    }
    // A marker that cannot be read is reported by a later step.
    guard let content = content(of: marker) else { return }
    try checkAgreement(content)
  }

  private func content(of marker: borrowing Descriptor) -> ContainerMarker? {
    guard let bytes = try? marker.readAll(size: min(marker.status().size, 1 << 16)) else {
      return nil
    }
    return try? ContainerMarker(bytes, path: path)
  }

  private func existingContent(_ root: borrowing Descriptor) -> ContainerMarker? {
    guard let marker = try? openExistingMarker(root) else { return nil }
    return content(of: marker)
  }

  /// Returns the sharing that the container records; nil if it cannot be read or is not recorded.
  func recordedSharing() -> Sharing? {
    guard let root = try? Descriptor.open(path: path, .readOnlyDirectory) else { return nil }
    return existingContent(root)?.sharing
  }

  /// Throws if the container's sharing differs from the caller's option.
  private func checkAgreement(_ marker: ContainerMarker) throws(WormholeError) {
    guard let sharing = marker.sharing, sharing != options.sharing else { return }
    let isGroups = sharing == .group
    throw refused(
      because: isGroups
        ? "the container is shared by a group, and was opened for a single user"
        : "the container belongs to a single user, and was opened for a group",
      hint: isGroups
        ? "add the option 'sharing' or '--group-shared'"
        : "remove '--group-shared' or the option 'sharing', or use another container")
  }

  // MARK: container.plist

  /// Reads `container.plist`, or makes it.
  ///
  /// Takes no lock: a lock holder could keep other processes out.
  func findMarker(_ root: borrowing Descriptor) throws(WormholeError) -> ContainerMarker {
    var tries = 0
    while true {
      do {
        if let marker = try openExistingMarker(root) {
          let content = try read(marker)
          try checkAgreement(content)
          return content
        }
        tries += 1
        // Only a tool that removes the file again and again could make this loop run on.
        guard tries < 100 else { throw Errno.busy }
        try make(root)
      } catch let error as Errno {
        throw self.error(error, in: root)
      } catch {
        throw error as? WormholeError
          ?? WormholeError(.system, "open container", path, because: "\(error)")
      }
    }
  }

  private func openExistingMarker(_ root: borrowing Descriptor) throws(Errno) -> Descriptor? {
    try ignoring(
      .noSuchFile, root.open(ContainerMarker.fileName, .readOnlyNonBlocking, isGuarded: true))
  }

  private func read(_ file: borrowing Descriptor) throws -> ContainerMarker {
    let status = try file.status()
    guard status.kind == .regular, status.size <= 1 << 16 else {
      throw refused(
        because: "\(ContainerMarker.fileName) is not a plain file, or has more than 65536 bytes",
        hint: "check the origin of the file, and move the file away")
    }
    guard options.sharing == .group || status.owner == Processes.effectiveUser else {
      throw refused(
        because: "\(ContainerMarker.fileName) belongs to user \(status.owner)",
        hint: "check the origin of the file, and move the file away")
    }
    guard status.mode & 0o002 == 0 else {
      throw refused(
        because: "all users may write to its \(ContainerMarker.fileName)",
        hint: "chmod o-w '\(path)/\(ContainerMarker.fileName)'")
    }
    let bytes = try file.readAll(size: status.size)
    return try ContainerMarker(bytes, path: path)
  }

  private func make(_ root: borrowing Descriptor) throws {
    guard createsIfMissing else {
      throw WormholeError(
        .notAContainer, "open container", path,
        because: "the directory contains no \(ContainerMarker.fileName)")
    }
    // Another process may have created the container meanwhile, and more in it.
    let ours = Set(
      Container.Folder.allCases.map(\.rawValue)
        + [ContainerMarker.fileName, Container.bridgeName])
    if let foreign = try root.names().first(where: {
      !ours.contains($0) && !$0.begins(with: ".") && $0 != "lost+found"
    }) {
      throw WormholeError(
        .notAContainer, "create a container in", path,
        because: "the directory contains other files, such as '\(foreign)'",
        hint: "use an empty or a new directory")
    }
    let staging = Staging(try ensureStaging(in: root), options.sharing, options.environment)
    for folder in Container.Folder.first where folder != .staging {
      _ = try staging.ensureDirectory(folder.rawValue, in: root)
    }
    // Before the marker has its name: a process that finds the marker takes the names of the
    // folders and of the container for durable, and syncs only names below the folders.
    if !Mutants.has(.markBeforeSync) {
      try syncNames(in: root)
      try syncNamesAbove()
    }
    let bytes = try ContainerMarker.fresh(options.environment, options.sharing).encoded()
    // Another process may make the container first, with the same result.
    try ignoring(.fileExists) { () throws(Errno) in
      try staging.withFile(bytes, sync: true) { name, _ throws(Errno) in
        try staging.directory().descriptor.publish(name, to: root, ContainerMarker.fileName)
      }
      // Without this name the container would be made again, with all that it holds.
      try syncNames(in: root)
    }
  }

  /// Some file systems sync no directory: there, a container is made all the same.
  private func syncNames(in root: borrowing Descriptor) throws(Errno) {
    try ignoring(.invalidArgument, root.sync())
  }

  /// Makes the names of all directories on the path durable.
  ///
  /// Any of them may be as new as the container, and made by a process that was killed.
  private func syncNamesAbove() throws(Errno) {
    var place = UserPath.withoutSlashes(path)
    while place != "/", place != "." {
      try Descriptor.syncParent(of: place)
      place = UserPath(place).directory
    }
  }

  /// Makes `staging/`, the place for all new files.
  func ensureStaging(in root: borrowing Descriptor) throws(Errno) -> Descriptor {
    try options.sharing.ensureBeside(
      Container.Folder.staging.rawValue, in: root, options.environment)
  }

  /// Returns the error for the container's own directories, or for the user's folder in `staging/`.
  func error(_ error: Errno, in root: borrowing Descriptor) -> WormholeError {
    var meaning = WormholeError(error, "open container", path)
    guard meaning.code == .permissionDenied else { return meaning }
    let paths = Container.Folder.allCases.map(\.rawValue) + ["staging/\(Staging.ownName)"]
    for folder in paths {
      guard let denial = options.sharing.denial(of: folder, in: root, at: path) else { continue }
      meaning.hint = denial
      break
    }
    return meaning
  }
}
