import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A group of two users with a file of Alice's, and directories that only she may enter.
///
/// The test process is root, which takes part in the group as well.
struct GroupScene {
  let place: SharedPlace
  let container: Container

  /// Where the file is.
  var folder: String { place.directory + "/cinema" }
  var file: String { folder + "/n" }
  /// Where the accesses are.
  var home: String { container.path + "/system/coordination" }

  /// Returns nil, and prints a notice, where a process cannot change its user.
  static func make(for what: String) throws -> GroupScene? {
    guard let place = try SharedPlace.make(for: what) else { return nil }
    try place.folder.descriptor.makeDirectory("shared/cinema", mode: 0o700)
    try place.give("shared/cinema", to: .alice, mode: 0o2770)
    let path = "\(place.directory)/cinema/.wormhole"
    #expect(try place.run(.alice, .open(path)).status == .exited(0))
    try place.folder.write("0", to: "shared/cinema/n")
    try place.give("shared/cinema/n", to: .alice, mode: 0o660)
    var options = ContainerOptions.testing()
    options.sharing = .group
    let container = try Container.open(path, create: false, options: options)
    let scene = GroupScene(place: place, container: container)
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    return scene
  }

  // MARK: What the users do

  func start(
    _ user: SharedPlace.User, _ job: PeerJob, environment: [String] = []
  ) throws -> Running {
    try place.start(user, job, environment: ["WORMHOLE_ROOT=\(place.directory)"] + environment)
  }

  func must(_ user: SharedPlace.User, _ job: PeerJob) throws {
    let outcome = try start(user, job).outcome()
    #expect(outcome.status == .exited(0), "\(job): \(outcome.errors)")
  }

  /// The coordinator of a program that runs as root.
  func coordinator() -> Coordinator {
    Coordinator(Arbiters(.testing(), root: place.directory))
  }

  /// A process of Alice's that is stopped while it replaces the file, and its hidden directory.
  func stoppedReplacer() throws -> (peer: Running, hidden: String) {
    let peer = try start(.alice, .coordinate(.replace, file, .stop))
    try peer.waitUntilStopped()
    let hidden = try names(folder).filter { $0.hasPrefix(".wormhole-") }
    return (peer, folder + "/" + (try #require(hidden.count == 1 ? hidden[0] : nil, "\(hidden)")))
  }

  // MARK: What lies where

  func names(_ path: String) throws -> [String] {
    try Descriptor.open(path: path, [.readOnly, .directory]).names()
  }

  /// The directory of skipped accesses is created for the first skipped access.
  func accesses(_ folder: String) throws -> [String] {
    if folder == "passed", try !names(home).contains(folder) { return [] }
    return try names("\(home)/\(folder)")
  }

  /// All files below a path, with owners and modes.
  func tree(_ path: String) throws -> [String] {
    let outcome = try run("find", [path, "-printf", "%P %u %m %s\\n"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output.split(separator: "\n").map(String.init).sorted()
  }

  func give(_ path: String, to user: SharedPlace.User, mode: FileMode) throws {
    try place.give(path.dropping(prefix: place.folder.path + "/"), to: user, mode: mode)
  }

  /// Makes a directory of Alice's with content, which no other user may enter.
  ///
  /// - Parameter files: further files in the directory.
  func makePrivate(_ path: String, _ files: [String] = []) throws {
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    for file in ["diary", "letters/first"] + files {
      let place = UserPath("\(path)/\(file)")
      if place.directory != path {
        try? Descriptor.makeDirectory(path: place.directory, mode: 0o700)
      }
      try Descriptor.open(path: place.path, [.writeOnly, .create], mode: 0o600).write("mine")
    }
    #expect(
      try run("chown", ["-R", "\(SharedPlace.User.alice.rawValue)", path]).status == .exited(0))
  }

  // MARK: Entries

  static let process = "0123456789abcdef"
  static let identity = "fedcba9876543210"
  /// An access of a process that does not exist.
  static let name = "00000000000000ff,\(process),1"

  var hidden: String { "\(folder)/.wormhole-\(Self.name).0" }
  var marker: String { "\(container.id).\(Self.identity)" }

  /// The content of an access's file, for an access that writes to these paths.
  static func entry(
    _ paths: [String], hidden: [String] = [], identity: String? = identity
  ) throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [
      "paths": .array(paths.map { .string($0) }),
      "writes": .array(paths.map { _ in .boolean(true) }),
      "purpose": .string("mischief"),
    ]
    if !hidden.isEmpty { entries["hidden"] = .array(hidden.map { .string($0) }) }
    if let identity { entries["identity"] = .string(identity) }
    return try BinaryEncoder().encode(PropertyListValue.dictionary(entries))
  }

  /// Has a user put an entry among the accesses.
  func plant(
    _ user: SharedPlace.User, _ bytes: [UInt8], in place: String, as name: String = name
  ) throws {
    if place == "passed", try !names(home).contains(place) {
      try must(.alice, .plantDirectory(home, place))
      try give("\(home)/\(place)", to: .alice, mode: 0o2770)
    }
    try must(user, .plant("\(home)/\(place)", name, bytes))
  }

  func findings(about text: String) throws -> [Diagnosis] {
    try container.inspect().filter { $0.subject.contains(text) || $0.what.contains(text) }
  }
}

extension String {
  fileprivate func dropping(prefix: String) -> String {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : self
  }
}
