import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// `wormhole remove --older-than` without a name.
@Suite(.blocking, .notSanitized("about what a command prints")) struct OldNameTests {
  /// The member has joined before that time, and has got no message.
  @Test func aRunningMemberKeepsNoOtherOneFromBeingRemoved() throws {
    let stage = try Stage()
    let container = try SharedContainer(directory: stage.container)
    let member = try container.join(as: "idle")
    defer { member.leave() }
    for name in ["a", "z"] { _ = try stage.run("wormhole receive --as \(name) --timeout 0") }
    let removed = try stage.run("wormhole remove member --older-than 0")
    #expect(removed.status == .exited(0), "\(removed.errors)")
    #expect(removed.output.split(separator: "\n").sorted() == ["a", "z"])
    #expect(try stage.run("wormhole members | cut -f 1").output == "idle\n")
    // The name that was asked for is not left out silently.
    let named = try stage.run("wormhole remove member idle --older-than 0")
    #expect(named.status == .exited(69), "\(named.errors)")
  }

  @Test func aChannelOfAnotherMachineKeepsNoOtherOneFromBeingRemoved() throws {
    let stage = try Stage()
    let container = try SharedContainer(directory: stage.container)
    for name in ["a", "copy", "z"] { try container.channel(name).put(1) }
    try container.storage.slot(.channels, "copy").setHome(ChannelHome(machine: "other"))
    let removed = try stage.run("wormhole remove channel --older-than 0")
    #expect(removed.status == .exited(0), "\(removed.errors)")
    #expect(removed.output == "a\nz\n")
    #expect(try container.channels() == ["copy"])
  }

  /// As a channel whose directory is closed to this user.
  @Test func anErrorAboutOneNameKeepsNoOtherOneFromBeingRemoved() throws {
    let stage = try Stage()
    for name in ["a", "b", "c"] { _ = try stage.run("wormhole put \(name) 1") }
    let removed = try stage.run(
      "wormhole remove channel --older-than 0",
      environment: ["WORMHOLE_FAULTS=open~channels/b@1+:before:fail=EACCES"])
    #expect(removed.output == "a\nc\n")
    #expect(removed.status == .exited(77), "\(removed.errors)")
    #expect(removed.errors.contains("'b'"), "\(removed.errors)")
    #expect(try stage.run("wormhole list").output == "b\n")
  }
}
