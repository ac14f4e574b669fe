import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Starts of members in a group's container: only commands of this account count, from a directory
/// that belongs to no other user.
@Suite(.blocking) struct GroupStartTests {
  private let folder: TemporaryDirectory
  private let meeting: Meeting

  init() throws {
    let folder = try TemporaryDirectory()
    self.folder = folder
    meeting = try Meeting { Self.adjust(&$0, state: folder.path + "/state") }
  }

  private static func adjust(_ options: inout Options, state: String) {
    options.sharing = .group
    options.environment.variable = { $0 == "XDG_STATE_HOME" ? state : nil }
  }

  private func another(state: String) throws -> SharedContainer {
    try meeting.another { Self.adjust(&$0, state: state) }
  }

  /// The folder of the container's starts.
  private func starts() throws -> String {
    let above = "\(folder.path)/state/wormhole/starts"
    let names = try Descriptor.open(path: above, [.readOnly, .directory]).names()
    #expect(names.count == 1)
    return above + "/" + names[0]
  }

  @Test func theyLieInTheAccountsOwnDirectory() throws {
    #expect(try meeting.container.launchCommand(of: "watch") == nil)
    #expect(try folder.descriptor.names() == [])
    try meeting.container.registerLaunch(
      of: "watch", program: "sh", arguments: ["-c", "exit"], environment: ["A": "b"],
      directory: "/")
    let start = try #require(try meeting.container.launchCommand(of: "watch"))
    #expect(start.program.hasSuffix("/sh") && start.arguments == ["-c", "exit"])
    #expect(start.environment == ["A": "b"] && start.directory == "/")
    let members = try Descriptor.open(
      path: meeting.path + "/members/watch", [.readOnly, .directory])
    #expect(try !members.names().contains("start.plist"))
    let directory = try Descriptor.open(path: try starts(), [.readOnly, .directory])
    #expect(try directory.names() == ["watch.plist"])
    #expect(try directory.status(of: "watch.plist").mode == 0o600)
    #expect(try directory.status().mode == 0o700)
    let root = try Descriptor.open(path: meeting.path, [.readOnly, .directory]).status()
    #expect(
      try starts().hasSuffix("/\(root.device)-\(root.inode)-\(meeting.container.storage.id)"))
    #expect(try meeting.container.removeLaunch(of: "watch"))
    #expect(try !meeting.container.removeLaunch(of: "watch"))
    #expect(try meeting.container.launchCommand(of: "watch") == nil)
  }

  /// The process that made the directories may have been killed before it synced their names.
  @Test func aRegistrationSyncsTheNamesOfTheDirectoriesThatItFinds() throws {
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let calls = try FaultPoints.with {
      try meeting.container.registerLaunch(of: "watch", program: "true")
    }
    for name in ["state", "state/wormhole", "state/wormhole/starts"] {
      let isSynced = calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix(name) }
      #expect(isSynced, "\(name): \(calls)")
    }
  }

  /// A process that is killed during a registration leaves a file beside the launch commands.
  @Test func theFilesOfKilledRegistrationsAreRemoved() throws {
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let directory = try Descriptor.open(path: try starts(), [.readOnly, .directory])
    let (dead, living) = ("0123456789abcdef", "fedcba9876543210")
    _ = try directory.open(dead, .writeOnlyNew, mode: 0o600)
    let held = try directory.open(living, .writeOnlyNew, mode: 0o600)
    #expect(try held.tryLock(.exclusive))
    try meeting.container.registerLaunch(of: "clock", program: "true")
    #expect(try directory.names().sorted() == ["clock.plist", living, "watch.plist"])
    try held.unlock()
  }

  /// A file of this user, of the right form and mode, that another user has moved to the path of a
  /// start in a container of one user.
  @Test func whatLiesInTheContainerStartsNothing() throws {
    let own = try Meeting()
    let mark = folder.path + "/started"
    try own.container.registerLaunch(of: "watch", program: "touch", arguments: [mark])
    _ = try meeting.container.storage.member("watch")
    let target = meeting.path + "/members/watch/start.plist"
    let outcome = try run("cp", ["-p", own.path + "/members/watch/start.plist", target])
    #expect(outcome.status == .exited(0))
    let error = try failure { try meeting.container.peer("watch").wake(within: .seconds(30)) }
    #expect(error.code == .notFound && error.reason == "no launch command is registered")
    #expect(try meeting.container.launchCommand(of: "watch") == nil)
    #expect(try !folder.descriptor.names().contains("started"))
    let findings = try meeting.container.storage.inspect()
    let told = findings.filter { $0.subject == "members/watch/start.plist" }
    #expect(
      told.map(\.what) == ["not trusted in a directory that the whole group can write to"])
  }

  /// A copy of a container has the original's id, and still does not have its starts.
  @Test func anotherContainerOfTheSameIdHasOthers() throws {
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let copy = meeting.folder.path + "/copy"
    #expect(try run("cp", ["-a", meeting.path, copy]).status == .exited(0))
    var options = Options()
    Self.adjust(&options, state: folder.path + "/state")
    let other = try SharedContainer(directory: copy, options: options)
    #expect(other.storage.id == meeting.container.storage.id)
    #expect(try other.launchCommand(of: "watch") == nil)
    #expect(try meeting.container.launchCommand(of: "watch") != nil)
  }

  @Test func aPlaceThatOthersMayWriteToIsRefused() throws {
    try meeting.container.registerLaunch(of: "watch", program: "true")
    for path in ["state", "state/wormhole", "state/wormhole/starts"] {
      let directory = try Descriptor.open(path: folder.path + "/" + path, [.readOnly, .directory])
      try directory.setMode(0o770)
      let error = try failure { try meeting.container.peer("watch").wake(within: .seconds(30)) }
      #expect(error.code == .refused && error.subject == folder.path + "/" + path)
      #expect(error.reason == "unauthorized users may write to it (mode 770)")
      #expect(throws: WormholeError.self) {
        try meeting.container.registerLaunch(of: "watch", program: "true")
      }
      try directory.setMode(0o700)
    }
    // The directories above are checked too: a writable directory needs the sticky bit.
    try folder.descriptor.setMode(0o777)
    #expect(try failure { _ = try meeting.container.launchCommand(of: "watch") }.code == .refused)
    try folder.descriptor.setMode(0o1777)
    #expect(try meeting.container.launchCommand(of: "watch") != nil)
    try folder.descriptor.setMode(0o700)
    let file = try Descriptor.open(path: starts() + "/watch.plist", [.readOnly])
    try file.setMode(0o620)
    #expect(try failure { _ = try meeting.container.launchCommand(of: "watch") }.code == .refused)
  }

  @Test func aLinkOnTheWayIsRefused() throws {
    try folder.descriptor.makeDirectory("elsewhere", mode: 0o700)
    try folder.descriptor.makeSymbolicLink("state", to: "elsewhere")
    let error = try failure { try meeting.container.registerLaunch(of: "watch", program: "true") }
    #expect(error.code == .refused && error.subject == folder.path + "/state")
    #expect(error.reason == "the path is a symbolic link, or not a directory")
    for path in ["state", "/tmp/../tmp"] {
      let odd = try another(state: path)
      #expect(try failure { _ = try odd.launchCommand(of: "watch") }.code == .refused)
    }
  }

  /// As after `sudo -E`, which keeps the caller's environment.
  @Test func theHomeOfAnotherAccountIsRefused() throws {
    guard Processes.effectiveUser == 0 else {
      skip("the home of another account", because: "only root can make one")
      return
    }
    try folder.descriptor.makeDirectory("state", mode: 0o700)
    #expect(try run("chown", ["12345", folder.path + "/state"]).status == .exited(0))
    let error = try failure { try meeting.container.registerLaunch(of: "watch", program: "true") }
    #expect(error.code == .refused)
    #expect(error.reason == "the directory belongs to user 12345, not to user 0")
    #expect(
      error.hint?.contains("set HOME or XDG_STATE_HOME to a private directory") == true)
  }
}
