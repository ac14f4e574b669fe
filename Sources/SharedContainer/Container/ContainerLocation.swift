internal import Syscalls

/// Where the container of an App Group identifier lies.
///
/// A group has one directory per user, below the XDG state directory: `wormhole/groups/<group>`,
/// the identifier escaped as all names are. That directory belongs to the programs of the group,
/// which put files of their own there; the container is `.wormhole/` inside it. `WORMHOLE_ROOT`
/// moves the parent of all groups, for services and for tests.
///
/// The home directory is the account's own, as `/etc/passwd` has it, and HOME only where that has
/// none: so all programs of a user meet, whatever HOME each was started with.
package struct ContainerLocation: Hashable, Sendable {
  /// What is there already, or is made without being looked at: how it is protected is the user's
  /// affair.
  package let base: String
  /// The directories below it that are the package's, from the top down.
  package let own: [String]
  /// The directory that all groups lie in.
  let groups: String
  /// The directory of the group, for its programs' files.
  package let directory: String
  package let container: String

  /// Where the groups of this process lie, in place of what its environment says; for tests.
  package static var givenRoot: String? {
    get { given.withLock { $0 } }
    set { given.withLock { $0 = newValue } }
  }
  private static let given = Monitor<String?>(nil)

  /// Works the place out; touches nothing.
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
          because: "\(variable) is '\(path)', which does not begin with a slash",
          hint: "set \(variable) to an absolute path, or unset it")
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
          because: "this user has no home directory",
          hint: "set WORMHOLE_ROOT, XDG_STATE_HOME or HOME")
      }
    }
    own = above + [escaped]
    groups = ([base] + above).joined(separator: "/")
    directory = groups + "/" + escaped
    container = directory + "/.wormhole"
  }

  /// What the places of this process's groups follow from.
  private struct Source: Equatable {
    var environment: [String: String]
    let user: UInt32

    // Two texts that look alike may be two places.
    static func == (left: Source, right: Source) -> Bool {
      left.user == right.user && left.environment.count == right.environment.count
        && left.environment.allSatisfy { name, value in
          right.environment[name]?.utf8.elementsEqual(value.utf8) == true
        }
    }
  }

  /// Each file that is coordinated asks for one, and there are few.
  private static let last = Monitor<[[UInt8]: (source: Source, location: ContainerLocation)]>([:])

  /// Works the place out for this process.
  ///
  /// - Parameter root: where all groups lie, in place of what the environment says.
  package init(group: String, root: String? = nil) throws(WormholeError) {
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
          hint: "set \(name) to another path, or unset it")
      }
      environment[name] = Processes.environment(name)
    }
    return environment
  }

  private static let homes = Monitor<[UInt32: String]>([:])

  /// The home directory that the machine has for a user: the same for as long as the process lives.
  static func home(of user: UInt32) throws(WormholeError) -> String? {
    if let home = homes.withLock({ $0[user] }) { return home }
    let home = home(of: user, in: try accounts())
    homes.withLock { $0[user] = home }
    return home
  }

  /// The home directory that a list of accounts has for a user.
  package static func home(of user: UInt32, in accounts: String) -> String? {
    for line in accounts.parts(between: "\n") {
      let fields = line.parts(between: ":", keepingEmpty: true)
      guard fields.count >= 7, UInt32(fields[2]) == user else { continue }
      if fields[5].begins(with: "/") { return fields[5] }
    }
    return nil
  }

  /// Read by hand: the C library's function is not there in a program without shared libraries.
  ///
  /// A machine may have none. What is only refused for a moment, for lack of descriptors say, is an
  /// error: elsewhere would be another container.
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

  /// Makes what is missing, with the mode 0700, and checks what is the package's own.
  package func prepare(_ sharing: Sharing) throws(WormholeError) {
    do throws(Errno) {
      try Self.makeAll(base)
    } catch {
      var failure = WormholeError(error, "make directory", base)
      // Services have homes that are none.
      if [.permissionDenied, .readOnly, .notFound].contains(failure.code) {
        failure.hint =
          "set WORMHOLE_ROOT to a directory that this user may write to, for all programs that are "
          + "to meet"
      }
      throw failure
    }
    var path = base
    for name in own {
      path += "/" + name
      // Of the directories on the way only the last is for the group's members to write to.
      let sharing = name == own.last ? sharing : .owner
      let status: FileStatus
      do throws(Errno) {
        status = try Self.make(path, sharing)
      } catch {
        throw WormholeError(error, "use directory", path)
      }
      try Self.check(status, path, sharing)
    }
  }

  private static func make(_ path: String, _ sharing: Sharing) throws(Errno) -> FileStatus {
    let place = UserPath(path)
    let parent = try place.openParent([.path, .directory])
    return try sharing.ensureBeside(
      place.name, in: parent, Sharing.hiddenName(Environment())
    ).status()
  }

  private static func check(
    _ status: FileStatus, _ path: String, _ sharing: Sharing
  ) throws(WormholeError) {
    if sharing == .owner, status.owner != Processes.effectiveUser {
      throw WormholeError(
        .refused, "use directory", path,
        because: "it belongs to user \(status.owner), and this is user "
          + "\(Processes.effectiveUser)")
    }
    guard status.mode & (sharing == .owner ? 0o022 : 0o002) == 0 else {
      throw WormholeError(
        .refused, "use directory", path, because: "others may write to it",
        hint: "chmod \(sharing == .owner ? "go-w" : "o-w") '\(path)'")
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
    do throws(Errno) {
      try Descriptor.makeDirectory(path: path, mode: 0o700)
    } catch {
      guard error == .fileExists else { throw error }
    }
  }
}
