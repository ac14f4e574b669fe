internal import WormholeSyscalls

/// The location of the container of an App Group identifier.
///
/// A group has one directory per user, below the XDG state directory: `wormhole/groups/<group>`,
/// with the identifier escaped as all names are. The directory is for the programs of the group,
/// which put their own files there; the container is `.wormhole/` inside it. `WORMHOLE_ROOT` moves
/// the parent of all groups, for services and for tests.
///
/// The home directory is the account's own, from `/etc/passwd`, and HOME is used only if the
/// account has none. All programs of a user therefore find each other, whatever HOME each was
/// started with.
///
/// The group ``userGroup`` is the user's own: its container orders the accesses to files that
/// belong to no group. If the user owns the parent of all groups, and no other user may write to
/// the parent, the user's container is in the parent too, like a group's. In a shared parent the
/// first user would own the name, and each further user could only remove the directory. In this
/// case each user's container is in a directory of the account's state directory, named for the
/// device and the inode of the parent.
package struct ContainerLocation: Hashable, Sendable {
  /// The part of the path that exists already, or is made without a check: the user is responsible
  /// for its protection.
  package let base: String
  /// The package's directories below, from the top down.
  package let own: [String]
  /// The directory of all groups.
  let groups: String
  /// The directory of the group, for its programs' files.
  package private(set) var directory: String
  package private(set) var container: String
  /// The state directory, if it contains the container, and the names on the path below.
  private var state: AccountState?
  private var stateNames: [String] = []

  /// The group for all files of a user that belong to no other group.
  package static let userGroup = "wormhole.user"

  /// The root of this process's groups, in place of the environment's; for tests.
  package static var givenRoot: String? {
    get { given.withLock { $0 } }
    set { given.withLock { $0 = newValue } }
  }
  private static let given = Monitor<String?>(nil)

  /// Computes the location without using the file system.
  package init(
    group: String, environment: [String: String],
    home: @autoclosure () throws(WormholeError) -> String?
  ) throws(WormholeError) {
    let escaped = try Container.escape(group)
    func absolute(_ variable: String) throws(WormholeError) -> String? {
      guard let path = environment[variable], !path.isEmpty else { return nil }
      guard path.begins(with: "/") else {
        throw WormholeError(
          .refused, "find the directory of group", group,
          because: "\(variable) is '\(path)', not an absolute path",
          hint: "set \(variable) to an absolute path, or remove the variable")
      }
      return UserPath.withoutSlashes(path)
    }
    var above: [String] = []
    if let root = try absolute("WORMHOLE_ROOT") {
      base = root
    } else {
      above = ["wormhole", "groups"]
      if let state = try absolute("XDG_STATE_HOME") {
        base = state
      } else if let home = try home() {
        base = [home, ".local", "state"].joined(separator: "/")
      } else if let home = try absolute("HOME") {
        base = [home, ".local", "state"].joined(separator: "/")
      } else {
        throw WormholeError(
          .notFound, "find the directory of group", group,
          because: "the user has no home directory",
          hint: "set WORMHOLE_ROOT, XDG_STATE_HOME or HOME")
      }
    }
    own = above + [escaped]
    groups = ([base] + above).joined(separator: "/")
    directory = groups + "/" + escaped
    container = directory + "/.wormhole"
  }

  /// The inputs for the locations of a process's groups.
  private struct Source: Equatable {
    var environment: [String: String]
    let user: UInt32

    // Texts that are equal as Unicode may be different paths.
    static func == (left: Source, right: Source) -> Bool {
      left.user == right.user && left.environment.count == right.environment.count
        && left.environment.allSatisfy { name, value in
          right.environment[name]?.utf8.elementsEqual(value.utf8) == true
        }
    }
  }

  /// A cache: each coordinated file requests a location, and there are few.
  private static let last = Monitor<[[UInt8]: (source: Source, location: ContainerLocation)]>([:])

  /// Computes the location for this process.
  ///
  /// - Parameter root: the directory of all groups, in place of the environment's.
  package init(
    group: String, root: String? = nil, _ environment: Environment = Environment()
  ) throws(WormholeError) {
    try self.init(inRootOf: group, root: root)
    guard group == Self.userGroup, try Self.isShared(groups) else { return }
    try moveToState(environment)
  }

  /// Whether other users may influence the content of a directory; a missing directory will be made
  /// by this user.
  private static func isShared(_ path: String) throws(WormholeError) -> Bool {
    let status = try naming(
      "read directory", path, ignoring(.noSuchFile, Descriptor.status(ofPath: path)))
    guard let status else { return false }
    return status.owner != Processes.effectiveUser || status.mode & 0o022 != 0
  }

  private mutating func moveToState(_ environment: Environment) throws(WormholeError) {
    let parent = try naming("read directory", groups, Descriptor.status(ofPath: groups))
    let state = try AccountState(environment)
    let names = ["wormhole", "roots", "\(parent.device)-\(parent.inode)"]
    directory = state.path(of: names)
    container = directory + "/.wormhole"
    (self.state, stateNames) = (state, names)
  }

  /// The location of the group below the directory of all groups, whether or not its container is
  /// there.
  ///
  /// - Parameter root: the directory of all groups, in place of the environment's.
  init(inRootOf group: String, root: String? = nil) throws(WormholeError) {
    var source = Source(environment: [:], user: Processes.effectiveUser)
    if let root = root ?? Self.givenRoot {
      source.environment["WORMHOLE_ROOT"] = root
    } else {
      source.environment = try Self.environment(for: group)
    }
    let key = Array(group.utf8)
    if let last = Self.last.withLock({ $0[key] }), last.source == source {
      self = last.location
      return
    }
    let user = source.user
    try self.init(
      group: group, environment: source.environment, home: try Self.home(of: user))
    let location = self
    Self.last.withLock { last in
      if last.count > 64 { last = [:] }
      last[key] = (source, location)
    }
  }

  private static func environment(
    for group: String
  ) throws(WormholeError) -> [String: String] {
    var environment: [String: String] = [:]
    for name in ["WORMHOLE_ROOT", "XDG_STATE_HOME", "HOME"] {
      guard !Processes.isGarbled(environment: name) else {
        throw WormholeError(
          .refused, "find the directory of group", group, because: "\(name) is not UTF-8",
          hint: "set \(name) to another path, or remove the variable")
      }
      environment[name] = Processes.environment(name)
    }
    return environment
  }

  private static let homes = Monitor<[UInt32: String]>([:])

  /// The user's home directory in the machine's list of accounts: constant as long as the process
  /// lives.
  static func home(of user: UInt32) throws(WormholeError) -> String? {
    if let home = homes.withLock({ $0[user] }) { return home }
    let home = home(of: user, in: try accounts())
    homes.withLock { $0[user] = home }
    return home
  }

  /// The user's home directory in a list of accounts.
  package static func home(of user: UInt32, in accounts: String) -> String? {
    for line in accounts.parts(between: "\n") {
      let fields = line.parts(between: ":", keepingEmpty: true)
      guard fields.count >= 7, UInt32(fields[2]) == user else { continue }
      if fields[5].begins(with: "/") { return fields[5] }
    }
    return nil
  }

  /// Parsed here, because the C library's function is not available in a program without shared
  /// libraries.
  ///
  /// A machine may have no list. A temporary failure, for example a lack of descriptors, is an
  /// error: another location would be another container.
  private static func accounts() throws(WormholeError) -> String {
    do throws(Errno) {
      let file = try Descriptor.open(path: "/etc/passwd", .readOnly)
      let status = try file.status()
      guard status.size <= 1 << 20 else { return "" }
      return String(decoding: try file.readAll(size: status.size), as: UTF8.self)
    } catch {
      let permanent: Set<Errno> = [.noSuchFile, .accessDenied, .notADirectory, .tooManyLinks]
      guard permanent.contains(error) else { throw WormholeError(error, "read", "/etc/passwd") }
      return ""
    }
  }

  /// Makes missing directories, with the mode 0700, and checks the package's own.
  package func prepare(_ sharing: Sharing) throws(WormholeError) {
    if let state {
      _ = try state.open(stateNames, making: true)
      return
    }
    do throws(Errno) {
      try Self.makeAll(base)
    } catch {
      var failure = WormholeError(error, "create directory", base)
      // Service accounts often have a home directory that does not exist.
      if [.permissionDenied, .readOnly, .notFound].contains(failure.code) {
        failure.hint =
          "set WORMHOLE_ROOT to the same writable directory for all programs that share the group"
      }
      throw failure
    }
    var path = base
    for (place, name) in own.enumerated() {
      path += "/" + name
      // Only the last directory on the path is writable for the group's members. The group may have
      // the name of a directory above.
      let sharing = place == own.count - 1 ? sharing : .owner
      let status: FileStatus
      do throws(Errno) {
        status = try Self.make(path, sharing)
      } catch {
        throw Self.refusal(of: error, path, sharing)
      }
      try Self.check(status, path, sharing)
    }
  }

  private static func make(_ path: String, _ sharing: Sharing) throws(Errno) -> FileStatus {
    let place = UserPath(path)
    let parent = try place.openParent([.path, .directory])
    return try sharing.ensureBeside(place.name, in: parent, Environment()).status()
  }

  /// Returns an error that names a directory with a wrong owner or mode, and a remedy.
  private static func refusal(
    of error: Errno, _ path: String, _ sharing: Sharing
  ) -> WormholeError {
    guard error == .notPermitted || error == .accessDenied,
      let status = try? Descriptor.status(ofPath: path, following: false)
    else { return WormholeError(error, "use directory", path) }
    do throws(WormholeError) {
      try check(status, path, sharing)
    } catch {
      return error
    }
    return WormholeError(error, "use directory", path)
  }

  private static func check(
    _ status: FileStatus, _ path: String, _ sharing: Sharing
  ) throws(WormholeError) {
    if sharing == .owner, status.owner != Processes.effectiveUser {
      throw WormholeError(
        .refused, "use directory", path,
        because: "the directory belongs to user \(status.owner), not to user "
          + "\(Processes.effectiveUser)")
    }
    guard status.mode & (sharing == .owner ? 0o022 : 0o002) == 0 else {
      throw WormholeError(
        .refused, "use directory", path, because: "unauthorized users may write to the directory",
        hint: "chmod \(sharing.withoutForeignWriters) '\(path)'")
    }
    if let complaint = sharing.complaint(about: status, path) {
      throw WormholeError(
        .refused, "use directory", path, because: complaint.reason, hint: complaint.hint)
    }
  }

  private static func makeAll(_ path: String) throws(Errno) {
    do throws(Errno) {
      return try Descriptor.makeDirectory(path: path, mode: 0o700)
    } catch {
      if error == .fileExists { return }
      let above = UserPath(path).directory
      guard error == .noSuchFile, above != ".", above != "/" else { throw error }
      try makeAll(above)
    }
    try ignoring(.fileExists, Descriptor.makeDirectory(path: path, mode: 0o700))
  }
}
