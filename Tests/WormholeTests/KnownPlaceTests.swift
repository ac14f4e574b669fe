import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Directories that a member of a group has renamed to paths that the group's container uses: the
/// programs of their owner neither open them to the group nor remove anything in them.
@Suite(.blocking, .notSanitized("processes of users who cannot write its log"))
struct KnownPlaceTests {
  /// The renamed directory, which in each case belongs to Alice.
  enum Kind: CaseIterable, Sendable {
    /// A private directory with files.
    case files
    case empty
    /// A private directory as made inside a group's directory.
    case setGroup
    /// One user's own container.
    case container
    /// The same, as made by earlier programs: the marker does not state the sharing.
    case unsaid
    /// A directory that every member may write to, with private directories inside.
    case forMembers

    /// Each path has two of the kinds, in turn, and in a long run all: one kind at all paths starts
    /// a hundred processes.
    func isTried(at index: Int) -> Bool {
      TestRun.isLong || (Self.allCases.firstIndex(of: self)! + index).isMultiple(of: 3)
    }

    /// The parts that no member but Alice can change.
    var parts: [String] {
      self == .forMembers ? ["private", "0123456789abcdef", "other"] : ["."]
    }
  }

  private static let message = "1,0000100001f3d77a2b4c,r01,3f9a0c11d2e84b67,phone"
  private static let digits = "fedcba9876543210"
  private static let own = "staging/\(SharedPlace.User.alice.rawValue)"

  /// Paths, from the container's directory, where only some containers have a directory, or where a
  /// directory may be made later; the group's paths and the existing directories are found.
  private static let further = [
    "../.wormhole-\(digits)", ".wormhole-\(digits)", "watches", "staging/\(digits)",
    "staging/.wormhole-\(digits)", "channels/new", "channels/n/lock/2.d",
    "channels/n/lock/1.d/next",
    "system/new", "system/presence", "system/coordination/passed", "system/coordination/presenters",
    "system/coordination/processes/\(digits)", "notices/bell", "members/new",
    "members/tv/inbox/\(message)", "members/tv/claimed/\(message)~1", "members/tv/dead/\(message)",
    "members/tv/receipts/\(message).ok", "members/tv/context/clock", "members/tv/files/\(message)",
    "members/tv/live/\(digits)", "guests/\(digits)", "damaged/1.n.plist",
    "bridge",
  ]

  /// Paths that only some containers have, and whose directories are used if they exist.
  private static let used: Set<String> = [
    "channels/n/lock/2.d", "system/coordination/presenters", "system/coordination/passed",
  ]

  @Test(arguments: Kind.allCases) func whatIsRenamedToAKnownPlaceStaysAsItIs(_ kind: Kind) throws {
    guard let place = try SharedPlace.make(for: "directories that a member renames") else { return }
    let setting = ["WORMHOLE_ROOT=\(place.directory)"]
    let made = try place.run(.alice, .furnish("group"), environment: setting)
    #expect(made.status == .signalled(9), "\(made.errors)")
    let group = try place.folder.descriptor.open("shared/group", [.readOnly, .directory])
    var found: [String] = []
    try Self.collect(try group.open(".wormhole", [.readOnly, .directory]), "", &found)
    #expect(Set(found).isSuperset(of: ["channels/n/lock/1.d", "members/tv/live", Self.own]))
    #expect(found.count > 40, "\(found)")
    let known = ["..", "."] + found
    for (index, path) in (known + Self.further).enumerated() {
      guard kind.isTried(at: index) else { continue }
      // These directories are like Alice's own folder, with the bit for the group. No member can
      // move such a directory to this path: the move to another parent needs permission to write to
      // the directory itself.
      if path == Self.own, [.setGroup, .container, .unsaid].contains(kind) { continue }
      // The remains of a dead guest are moved away as a whole.
      let isGuests = path.hasPrefix("guests/") && path.split(separator: "/").count > 2
      let isUsed = known.contains(path) && !isGuests || Self.used.contains(path)
      try check(kind, at: path, isUsed: isUsed, place, setting)
    }
  }

  private func check(
    _ kind: Kind, at path: String, isUsed: Bool, _ place: SharedPlace, _ setting: [String]
  ) throws {
    let what: Comment = "\(kind) as '\(path)'"
    let directory = "shared/case"
    try must("rm", ["-rf", "\(place.folder.path)/\(directory)"])
    try must("cp", ["-a", "\(place.directory)/group", "\(place.folder.path)/\(directory)"])
    let full =
      switch path {
      case "..": directory
      case ".": directory + "/.wormhole"
      default:
        path.hasPrefix("../")
          ? directory + path.dropFirst(2) : "\(directory)/.wormhole/\(path)"
      }
    let name = String(full.split(separator: "/").last!)
    let parent = try place.folder.descriptor.open(
      String(full.dropLast(name.utf8.count + 1)), [.readOnly, .directory])
    if (try? parent.status(of: name)) != nil {
      try parent.rename(name, to: place.folder.descriptor, "aside")
    }
    defer { _ = try? run("rm", ["-rf", place.folder.path + "/aside"]) }
    try make(kind, "shared/planted", place)
    try place.folder.descriptor.rename("shared/planted", to: parent, name)
    let before = try snapshots(kind, name, in: parent)

    let tried = try place.run(.alice, .tryEverything("case"), environment: setting)
    #expect(tried.status == .exited(0), "\(what): \(tried.errors)")
    #expect(tried.output.contains("remove member: "), what)
    #expect(try remains(kind, name, in: parent, place) == before, what)
    if isUsed, kind != .forMembers {
      let mode = path == Self.own ? "2700" : "2770"
      let isNamed = tried.output.contains("chmod \(mode) '\(place.folder.path)/\(full)'")
      let isToldOf = kind == .container && tried.output.contains("belongs to a single user")
      #expect(isNamed || isToldOf, "\(what): \(tried.output)")
    }
  }

  private func snapshots(
    _ kind: Kind, _ name: String, in parent: borrowing Descriptor
  ) throws -> [DirectorySnapshot] {
    var found: [DirectorySnapshot] = []
    let directory = try parent.open(name, [.readOnly, .directory])
    for part in kind.parts { found.append(try DirectorySnapshot(of: part, in: directory)) }
    return found
  }

  /// A message that nobody can read becomes a dead letter: its directory moves as it is.
  private func remains(
    _ kind: Kind, _ name: String, in parent: borrowing Descriptor, _ place: SharedPlace
  ) throws -> [DirectorySnapshot] {
    guard name.hasPrefix(Self.message), (try? parent.status(of: name)) == nil else {
      return try snapshots(kind, name, in: parent)
    }
    let dead = try place.folder.descriptor.open(
      "shared/case/.wormhole/members/tv/dead", [.readOnly, .directory])
    return try snapshots(kind, Self.message, in: dead)
  }

  private func make(_ kind: Kind, _ name: String, _ place: SharedPlace) throws {
    let path = place.folder.path + "/" + name
    switch kind {
    case .files, .setGroup: try fill(name, place, mode: kind == .files ? 0o700 : 0o2700)
    case .empty:
      try place.folder.descriptor.makeDirectory(name, mode: 0o700)
      try place.give(name, to: .alice, mode: 0o700)
    case .container, .unsaid:
      let made = try place.run(
        .alice, .add(path, "n", times: 2), environment: ["WORMHOLE_TEST_SHARING=owner"])
      #expect(made.output == "1\n2\n", "\(made.errors)")
      if kind == .unsaid { try unsay(name, place) }
    case .forMembers:
      try place.folder.descriptor.makeDirectory(name, mode: 0o700)
      try place.give(name, to: .alice, mode: 0o2770)
      try place.folder.write("for all", to: name + "/plain")
      try fill(name + "/private", place, mode: 0o2700)
      try fill(name + "/0123456789abcdef", place, mode: 0o700)
      // Not every member of the first group belongs to the second group.
      try fill(name + "/other", place, mode: 0o2770)
      try must("chgrp", ["-R", "61009", path + "/other"])
      try must("chmod", ["2770", path + "/other"])
    }
  }

  private func fill(_ name: String, _ place: SharedPlace, mode: FileMode) throws {
    try place.folder.descriptor.makeDirectory(name, mode: 0o700)
    let inner = ["inner", "inner/deep", "fedcba9876543210"]
    for directory in inner {
      try place.folder.descriptor.makeDirectory("\(name)/\(directory)", mode: 0o700)
    }
    let files = ["letter", ".hidden", "0123456789abcdef", "next"] + inner.map { $0 + "/letter" }
    for file in files { try place.folder.write("private", to: "\(name)/\(file)") }
    try must("chown", ["-R", "61001:61000", "\(place.folder.path)/\(name)"])
    try must("chmod", [SharedPlace.word(for: mode), "\(place.folder.path)/\(name)"])
  }

  /// Removes the marker's entry that states the container's sharing.
  private func unsay(_ name: String, _ place: SharedPlace) throws {
    let path = "\(name)/container.plist"
    let marker = try BinaryPropertyList.decode(place.folder.bytes(of: path))
    var entries = try #require(marker.dictionaryValue)
    entries["sharing"] = nil
    let file = try place.folder.descriptor.open(path, [.writeOnly, .truncate])
    try file.write(try BinaryEncoder().encode(PropertyListValue.dictionary(entries)))
  }

  private func must(_ program: String, _ arguments: [String]) throws {
    let outcome = try run(program, arguments)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  /// The paths of all directories below a directory, except inside users' own folders.
  private static func collect(
    _ directory: borrowing Descriptor, _ path: String, _ found: inout [String]
  ) throws {
    for name in try directory.names().sorted() {
      guard try directory.status(of: name).kind == .directory else { continue }
      found.append(path + name)
      if path == "staging/" { continue }
      try collect(directory.open(name, [.readOnly, .directory]), path + name + "/", &found)
    }
  }
}
