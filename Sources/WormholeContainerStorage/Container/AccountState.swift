internal import WormholeSyscalls

/// The account's own state directory, in which no other user may decide anything.
///
/// It contains the launch commands, and the user's own container if users share the directory of
/// all groups.
///
/// Its location follows the XDG base directories: `XDG_STATE_HOME`, or `.local/state` in the
/// account's home. A user who may write to a directory may replace its entries, so each directory
/// on the path is checked. From the home, or from `XDG_STATE_HOME`, downward the directories belong
/// to the effective user, and no other user may write to them. The directories above belong to the
/// user or to the owner of the root directory. Other users may write to them only if no user can
/// remove another user's entries, as in `/tmp`. Links are not followed.
struct AccountState: Hashable, Sendable {
  /// The names from the root to the first directory of the account.
  private let above: [String]
  /// The names from there to the state directory.
  private let below: [String]

  init(variable: (String) -> String?, home: String?) throws(WormholeError) {
    let operation = "find the state directory of"
    let account = "user \(Processes.effectiveUser)"
    let hint = "set XDG_STATE_HOME to a directory of the user"
    let base: String
    if let state = variable("XDG_STATE_HOME"), !state.isEmpty {
      (base, below) = (state, [])
    } else if let home = home ?? variable("HOME"), !home.isEmpty {
      (base, below) = (home, [".local", "state"])
    } else {
      throw WormholeError(
        .notFound, operation, account, because: "the user has no home directory", hint: hint)
    }
    above = base.parts(between: "/").filter { $0 != "." }
    guard base.begins(with: "/") else {
      throw WormholeError(
        .refused, operation, account, because: "'\(base)' is not an absolute path", hint: hint)
    }
    guard !above.contains("..") else {
      throw WormholeError(
        .refused, operation, account, because: "'\(base)' contains '..'", hint: hint)
    }
  }

  /// The state directory of the process's account.
  init(_ environment: Environment) throws(WormholeError) {
    try self.init(
      variable: environment.variable,
      home: try ContainerLocation.home(of: Processes.effectiveUser))
  }

  /// The path of a directory below the state directory.
  func path(of names: [String]) -> String {
    "/" + (above + below + names).joined(separator: "/")
  }

  /// Opens a directory below the state directory.
  ///
  /// - Parameters:
  ///   - making: whether missing directories are made.
  ///   - syncing: whether the names of existing directories are made durable, too: the process that
  ///     has made a directory may have been killed before it synced the name.
  /// - Returns: nil if a directory is missing.
  func open(
    _ names: [String], making: Bool, syncing: Bool = false
  ) throws(WormholeError) -> OpenDirectory? {
    var path = ""
    let all = above + below + names
    do {
      var directory = try Descriptor.open(path: "/", [.path, .directory])
      let trusted = try directory.status().owner
      for (place, name) in all.enumerated() {
        path += "/" + name
        let isOwn = place + 1 >= above.count
        directory = try Self.step(
          into: name, in: directory, making: making, syncing: syncing && isOwn)
        if let reason = Self.objection(
          to: try directory.status(), isOwn: isOwn, trusting: trusted)
        {
          throw refusal(of: path, because: reason)
        }
      }
      return OpenDirectory(try directory.open(".", .readOnlyDirectory))
    } catch let error as WormholeError {
      throw error
    } catch {
      switch error as! Errno {  // The calls above throw only these two types.
      case .noSuchFile where !making: return nil
      case .notADirectory, .tooManyLinks:
        throw refusal(of: path, because: "the path is a symbolic link, or not a directory")
      case let error: throw WormholeError(error, "use directory", path)
      }
    }
  }

  private static func step(
    into name: String, in directory: borrowing Descriptor, making: Bool, syncing: Bool
  ) throws(Errno) -> Descriptor {
    do throws(Errno) {
      let existing = try directory.open(name, [.path, .directory])
      if syncing { try syncNames(in: directory) }
      return existing
    } catch {
      guard error == .noSuchFile, making else { throw error }
    }
    try ignoring(.fileExists, directory.makeDirectory(name, mode: 0o700))
    do throws(Errno) {
      try syncNames(in: directory)
    } catch {
      // The next call would find the directory, and take its name for durable.
      try? directory.removeDirectory(name)
      throw error
    }
    return try directory.open(name, [.path, .directory])
  }

  /// What is written below a new directory is durable only with the directory's own name.
  private static func syncNames(in directory: borrowing Descriptor) throws(Errno) {
    // A directory that is not readable cannot be synced; some file systems sync no directory.
    try ignoring([.accessDenied, .invalidArgument]) { () throws(Errno) in
      // A descriptor for a path syncs nothing.
      try directory.open(".", .readOnlyDirectory).sync()
    }
  }

  /// Returns why another user may have written the content of a directory; nil if no other user can
  /// have.
  static func objection(to status: FileStatus, isOwn: Bool, trusting trusted: UInt32) -> String? {
    let user = Processes.effectiveUser
    if status.owner != user, isOwn || status.owner != trusted {
      return "the directory belongs to user \(status.owner), not to user \(user)"
    }
    let isSticky = status.mode & 0o1000 != 0
    if status.mode & 0o022 != 0, isOwn || !isSticky {
      return "unauthorized users may write to it (mode \(String(status.mode, radix: 8)))"
    }
    return nil
  }

  private func refusal(of path: String, because reason: String) -> WormholeError {
    WormholeError(
      .refused, "use directory", path, because: reason,
      hint: "make user \(Processes.effectiveUser) the only owner and writer of the directory, or "
        + "set HOME or XDG_STATE_HOME to a private directory")
  }
}
