package import WormholeSyscalls

/// A directory for a group of users, none of whom has an account, and processes of these users.
///
/// Only root can change its user: elsewhere no such directory is made, and the test reports a skip.
package final class SharedPlace: Sendable {
  package enum User: UInt32, Sendable { case alice = 61_001, bob = 61_002, carol = 61_003 }

  private static let group: UInt32 = 61_000
  package let folder: TemporaryDirectory
  /// Where a container may be made.
  package var path: String { directory + "/c" }
  /// A directory of the group's.
  package var directory: String { folder.path + "/shared" }

  private init() throws {
    folder = try TemporaryDirectory()
    try folder.descriptor.setMode(0o711)
    try folder.descriptor.makeDirectory("shared", mode: 0o700)
    try give("shared", to: .alice, mode: 0o2770)
  }

  /// Returns nil, and prints a notice, where a process cannot change its user.
  package static func make(for what: String) throws -> SharedPlace? {
    guard Processes.effectiveUser == 0 else {
      skip(what, because: "only root can become another user")
      return nil
    }
    let place = try SharedPlace()
    let outcome = try place.run(.alice, .touch(place.directory, "tried"))
    guard outcome.status != .exited(77) else {
      skip(what, because: "there is no other user to become")
      return nil
    }
    try Descriptor.open(path: place.directory, [.readOnly, .directory]).unlink("tried")
    return place
  }

  /// The argument for `chmod`, which keeps the bit for the group unless it gets five digits.
  package static func word(for mode: FileMode) -> String {
    "0" + String(repeating: "0", count: max(0, 4 - String(mode, radix: 8).utf8.count))
      + String(mode, radix: 8)
  }

  /// Gives a file or directory of the folder to a user, and to the group.
  package func give(_ name: String, to user: User, mode: FileMode) throws {
    let path = folder.path + "/" + name
    _ = try TestSupport.run("chown", ["\(user.rawValue):\(Self.group)", path])
    _ = try TestSupport.run("chmod", [Self.word(for: mode), path])
  }

  /// Starts the peer as one of the users, for containers of a group.
  package func start(
    _ user: User, _ job: PeerJob, environment: [String] = []
  ) throws -> Running {
    try Running(
      .as(user: user.rawValue, group: Self.group, job),
      environment: environment + ["WORMHOLE_TEST_SHARING=group"])
  }

  /// The same, to its end.
  package func run(
    _ user: User, _ job: PeerJob, environment: [String] = []
  ) throws -> ProcessOutcome {
    try start(user, job, environment: environment).outcome()
  }

  /// What can be seen in the container and is not for all of the group.
  package func exclusive() throws -> [String] {
    guard let root = try? Descriptor.open(path: path, [.readOnly, .directory]) else { return [] }
    var found = try root.status().mode & 0o2770 == 0o2770 ? [] : ["the container"]
    try Self.collectExclusive(root, "", &found)
    return found
  }

  private static func collectExclusive(
    _ directory: borrowing Descriptor, _ path: String, _ found: inout [String]
  ) throws {
    for name in try directory.names() {
      let own = path + name
      let status = try directory.status(of: name)
      switch status.kind {
      case .directory:
        // A user's own folder is no matter of the other users, nor is a directory that will become
        // one of the container's.
        if path == "staging/" || name.hasPrefix(".wormhole-") { continue }
        if status.mode & 0o2770 != 0o2770 { found.append("\(own) \(status.mode)") }
        let inner = try directory.open(name, [.readOnly, .directory])
        try collectExclusive(inner, own + "/", &found)
      case .regular where name != "next":
        if status.mode & 0o660 != 0o660 { found.append("\(own) \(status.mode)") }
      default: break
      }
    }
  }
}
