import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// The rights that `wormhole bridge rights` prints, on a real server and through a leaf.
@Suite(.blocking, .notSanitized("about processes")) struct BridgeRightsTests {
  private let folder: TemporaryDirectory
  private let machine: String

  init() throws {
    folder = try TemporaryDirectory()
    machine = folder.path + "/c"
    // The first start gives the machine its name.
    let first = try run(
      Programs.built("wormhole"),
      [
        "--container", machine, "bridge", "--shared-as", "g", "--nats", "nats://127.0.0.1:1",
        "--timeout", "0",
      ])
    #expect(first.status == .exited(69))
  }

  private func rights() throws -> [String] {
    let outcome = try run(
      Programs.built("wormhole"), ["--container", machine, "bridge", "rights"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  /// A container that has no name yet has no rights, either.
  @Test func aMachineWithoutANameHasNoRights() throws {
    let path = folder.path + "/other"
    _ = try SharedContainer(directory: path)
    let outcome = try run(
      Programs.built("wormhole"), ["--container", path, "bridge", "rights"])
    #expect(outcome.status == .exited(1), "\(outcome.errors)")
    #expect(outcome.errors.contains("no bridge has ever served"))
    let wrong = try run(
      Programs.built("wormhole"), ["bridge", "rights", "--machine", "x", "--shared-as", "g"])
    #expect(wrong.status == .exited(64) && wrong.errors.contains("16 hexadecimal digits"))
  }

  @Test func thePrintedRightsAreEnough() throws {
    let text = try rights().joined(separator: "\n")
    guard let hub = try LimitedHub.start(rights: text, for: "the printed rights") else { return }
    try hub.setUp()
    let bridge = try start(hub)
    try eventually("the bridge carries", within: .seconds(60)) {
      try bridge.errors.contains("carrying between machines")
    }
    // Some rights take another machine.
    let alone = try hub.run(["doctor"], container: machine, as: hub.leaf)
    #expect(alone.output.contains("13 of 18 rights were tried and work"), "\(alone.output)")
    #expect(
      alone.output.split(separator: "\n").count { $0.contains("could not try to") } == 5,
      "\(alone.output)")
    #expect(alone.status == .exited(0), "\(alone.output)")
    let other = try startOther(hub)
    let doctor = try hub.run(["doctor"], container: machine, as: hub.leaf)
    #expect(doctor.output.contains("18 of 18 rights were tried and work"), "\(doctor.output)")
    #expect(doctor.status == .exited(0) && !doctor.output.contains("could not try"))
    #expect(!other.hasEnded)
    #expect(!bridge.hasEnded)
    try bridge.child.send(.terminate)
    #expect(try bridge.outcome(within: .seconds(60)).status == .exited(0))
  }

  /// Starts the bridge of a machine with all rights, and waits until it carries.
  private func startOther(_ hub: LimitedHub) throws -> Running {
    let bridge = try Running(
      Programs.built("wormhole"),
      [
        "--container", folder.path + "/other", "bridge", "--shared-as", "g", "--nats",
        hub.administrator, "--token-file", hub.tokenFile,
      ])
    try eventually("the other bridge carries", within: .seconds(60)) {
      try bridge.errors.contains("carrying between machines")
    }
    return bridge
  }

  /// Rights that only the bridge of another machine can show; `M` is the machine.
  @Test(arguments: ["whb.g.*", "whb.g.M", "_INBOX.>", "whm.*.*.M"])
  func theDoctorFindsAMissingRightWithTheHelpOfAnotherMachine(_ pattern: String) throws {
    let all = try rights()
    let record = try #require(all.first { $0.contains("whs.*.g.x.") })
    let name = String(try #require(record.split(separator: ".").last).prefix(16))
    let subject = String(pattern.replacing("M", with: name))
    let text = all.filter { !$0.contains("\"\(subject)\"") }
    #expect(text.count == all.count - 1)
    guard let hub = try LimitedHub.start(rights: text.joined(separator: "\n"), for: "a right")
    else { return }
    try hub.setUp()
    let bridge = try start(hub)
    let other = try startOther(hub)
    try eventually("the bridge carries", within: .seconds(60)) {
      try bridge.errors.contains("carrying between machines")
    }
    let doctor = try hub.run(["doctor"], container: machine, as: hub.leaf)
    #expect(doctor.output.contains("\"\(subject)\""), "\(doctor.output)")
    #expect(!doctor.output.contains("18 of 18"), "\(doctor.output)")
    // Without the right to ask, no machine seems to be there.
    #expect(doctor.status == .exited(pattern.hasPrefix("whm") ? 0 : 1), "\(doctor.output)")
    #expect(!bridge.hasEnded && !other.hasEnded)
  }

  private func start(_ hub: LimitedHub) throws -> Running {
    try Running(
      Programs.built("wormhole"),
      [
        "--container", machine, "bridge", "--shared-as", "g", "--nats", hub.leaf, "--token-file",
        hub.tokenFile,
      ])
  }

  /// A leaf hides that the hub refuses a right: messages would wait for ever.
  @Test(arguments: ["whf.*.*.g.", "whs.*.g.m.", "whs.*.g.x.", "CREATE.*.*.whf", "whs.*.g.h."])
  func aMissingRightEndsTheBridge(_ part: String) throws {
    let text = try rights().filter { !$0.contains(part) }.joined(separator: "\n")
    guard let hub = try LimitedHub.start(rights: text, for: "a missing right") else { return }
    try hub.setUp()
    let outcome = try start(hub).outcome(within: .seconds(120))
    #expect(outcome.status == .exited(77), "\(outcome.errors)")
    #expect(outcome.errors.contains(part) && outcome.errors.contains("bridge rights"))
    let doctor = try hub.run(["doctor"], container: machine, as: hub.leaf)
    #expect(doctor.status == .exited(1) && doctor.output.contains("add \""), "\(doctor.output)")
    #expect(doctor.output.contains(part))
  }
}
