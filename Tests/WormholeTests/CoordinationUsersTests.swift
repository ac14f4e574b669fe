import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Two users access the files of a group that both share.
@Suite(.blocking) struct CoordinationUsersTests {
  private let place: SharedPlace?

  init() throws {
    place = try SharedPlace.make(for: "accesses of two users")
    guard let place else { return }
    try place.folder.descriptor.makeDirectory("shared/cinema", mode: 0o700)
    try place.give("shared/cinema", to: .alice, mode: 0o2770)
    let made = try place.run(.alice, .open("\(place.directory)/cinema/.wormhole"))
    #expect(made.status == .exited(0), "\(made.errors)")
    try place.folder.write("0", to: "shared/cinema/n")
    try place.give("shared/cinema/n", to: .alice, mode: 0o660)
  }

  private func start(
    _ place: SharedPlace, _ user: SharedPlace.User, _ job: PeerJob
  ) throws -> Running {
    try place.start(user, job, environment: ["WORMHOLE_ROOT=\(place.directory)"])
  }

  @Test func theyWaitForEachOther() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .coordinate(.write, path, .linger))
    try eventually("she is inside") { try alice.output == "inside\n" }
    let bob = try start(place, .bob, .coordinate(.read, path, .nothing))
    let waiting = "\(place.directory)/cinema/.wormhole/system/coordination/waiting"
    try eventually("he waits") {
      try !Descriptor.open(path: waiting, [.readOnly, .directory]).names().isEmpty
    }
    #expect(try bob.output == "")
    try alice.child.send(.kill)
    let end = try bob.outcome()
    #expect(end.output == "inside\ndone\n", "\(end.errors)")
    let peers = try [SharedPlace.User.alice, .bob, .alice, .bob].map { user in
      try start(place, user, .coordinateAdd(path, times: 25))
    }
    for peer in peers { #expect(try peer.outcome(within: .seconds(60)).errors == "") }
    #expect(try place.folder.read("shared/cinema/n") == "100")
  }

  @Test func whatOneShowsTheOtherAsksFor() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .present(path, .save("saved")))
    try eventually("she presents") { try alice.output == "presenting\n" }
    let bob = try start(place, .bob, .coordinate(.write, path, .write("his")))
    let end = try bob.outcome()
    #expect(end.output == "inside\ndone\n", "\(end.errors)")
    try eventually("she is told") {
      try alice.output
        == "presenting\nasked before writing\nsaved\nresumed\nchanged .\n"
    }
    #expect(try place.folder.read("shared/cinema/n") == "his")
  }

  private var processes: String {
    get throws {
      "\(try #require(place).directory)/cinema/.wormhole/system/coordination/processes"
    }
  }

  /// Each user with permission to read the file can hold a shared lock on it, so a shared lock does
  /// not show that the process runs.
  @Test func aSharedLockOnADeadProcessesFileKeepsNobodyWaiting() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .coordinate(.write, path, .linger))
    try eventually("she is inside") { try alice.output == "inside\n" }
    let name = try #require(
      try Descriptor.open(path: processes, [.readOnly, .directory]).names().first)
    let status = try Descriptor.status(ofPath: processes + "/" + name)
    #expect(status.mode == 0o640 && status.owner == SharedPlace.User.alice.rawValue)
    try alice.child.send(.kill)
    _ = try alice.outcome()
    let bob = try start(place, .bob, .share(processes, name))
    try eventually("he has a lock") { try bob.output == "held\n" }
    let next = try start(place, .alice, .coordinate(.write, path, .nothing)).outcome()
    #expect(next.output == "inside\ndone\n", "\(next.errors)")
    #expect(!bob.hasEnded)
  }

  /// No other user can hold the exclusive lock, which would make the file's process appear to run.
  @Test func noOtherUserCanPassForALivingProcess() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .coordinate(.write, path, .linger))
    try eventually("she is inside") { try alice.output == "inside\n" }
    let name = try #require(
      try Descriptor.open(path: processes, [.readOnly, .directory]).names().first)
    try alice.child.send(.kill)
    _ = try alice.outcome()
    let bob = try start(place, .bob, .hold(processes, name)).outcome()
    #expect(bob.errors.contains("permission denied"), "\(bob)")
  }

  // MARK: Files of no group, below a shared parent of all groups

  /// A user's directory for the account's state.
  private func state(_ place: SharedPlace, _ user: SharedPlace.User) throws -> String {
    let name = "state-\(user)"
    if (try? place.folder.descriptor.status(of: name)) == nil {
      try place.folder.descriptor.makeDirectory(name, mode: 0o700)
      try place.give(name, to: user, mode: 0o700)
      try place.folder.write("0", to: "file-\(user)")
      try place.give("file-\(user)", to: user, mode: 0o600)
    }
    return "\(place.folder.path)/\(name)"
  }

  /// Accesses a file of the user that belongs to no group.
  private func access(
    _ place: SharedPlace, _ user: SharedPlace.User, _ what: PeerJob.Inside
  ) throws -> Running {
    let settings = [
      "WORMHOLE_ROOT=\(place.directory)", "XDG_STATE_HOME=\(try state(place, user))",
    ]
    let path = "\(place.folder.path)/file-\(user)"
    return try place.start(user, .coordinate(.write, path, what), environment: settings)
  }

  @Test func eachOfThemHasTheFilesThatAreNoGroups() throws {
    guard let place else { return }
    let users = [SharedPlace.User.alice, .bob]
    let inside = try users.map { try access(place, $0, .linger) }
    for peer in inside { try eventually("inside") { try peer.output == "inside\n" } }
    let parent = try Descriptor.open(path: place.directory, [.readOnly, .directory])
    #expect(try parent.names() == ["cinema"])
    let status = try parent.status()
    for (user, peer) in zip(users, inside) {
      // Programs of one user meet.
      let next = try access(place, user, .nothing)
      let container =
        "\(try state(place, user))/wormhole/roots/\(status.device)-\(status.inode)/.wormhole"
      let waiting = container + "/system/coordination/waiting"
      try eventually("it waits") {
        try !Descriptor.open(path: waiting, [.readOnly, .directory]).names().isEmpty
      }
      #expect(try next.output == "")
      try peer.child.send(.kill)
      #expect(try next.outcome().output == "inside\ndone\n")
    }
  }

  /// A user gains nothing by taking the name away from the other users.
  @Test func nobodyCanTakeTheNameOfTheUsersOwn() throws {
    guard let place else { return }
    let taken = "shared/wormhole.user"
    try place.folder.descriptor.makeDirectory(taken, mode: 0o700)
    try place.give(taken, to: .bob, mode: 0o700)
    let before = try DirectorySnapshot(of: taken, in: place.folder.descriptor)
    for user in [SharedPlace.User.alice, .bob] {
      let end = try access(place, user, .nothing).outcome()
      #expect(end.output == "inside\ndone\n", "\(end.errors)")
    }
    #expect(try DirectorySnapshot(of: taken, in: place.folder.descriptor) == before)
  }
}
