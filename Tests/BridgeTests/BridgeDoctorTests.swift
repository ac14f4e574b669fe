import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// `wormhole bridge doctor`, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct BridgeDoctorTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  private func doctor(
    _ machine: BridgedMachine, _ further: [String] = []
  ) throws -> ProcessOutcome {
    var words = machine.arguments(further)
    words.insert("doctor", at: 3)
    return try Running(Programs.built("wormhole"), words).outcome(within: .seconds(90))
  }

  @Test func aSoundBridgeHasNoProblem() throws {
    guard let machines else { return }
    try eventually("no problem is found", within: .seconds(60)) {
      let outcome = try doctor(machines.here)
      return outcome.status == .exited(0) && outcome.output.contains("its bridge answers")
        && outcome.output.contains("a bridge serves the container")
        && outcome.output.contains("stream WHF_0: ")
        && outcome.output.contains("rights were tried and work")
    }
    let object = try doctor(machines.here, ["--json"]).output.split(separator: "\n").first ?? ""
    #expect(object.contains("\"severity\":\"fine\"") && object.contains("\"advice\":"))
  }

  @Test func aBridgeThatDoesNotRunIsAProblem() throws {
    guard let machines else { return }
    let third = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let fresh = try doctor(third)
    #expect(fresh.output.contains("no bridge has ever served the container"))
    try machines.here.kill()
    try eventually("the bridge's end is noticed", within: .seconds(60)) {
      let outcome = try doctor(machines.here)
      return outcome.status == .exited(1)
        && outcome.output.contains("no bridge serves the container")
    }
    let other = try doctor(machines.there)
    #expect(other.output.contains("its bridge does not answer"), "\(other.output)")
    #expect(other.status == .exited(0), "\(other.output)")
  }

  @Test func serversThatAreNotThereAreAProblem() throws {
    guard let machines else { return }
    let outcome = try doctor(machines.here, ["--nats", "nats://127.0.0.1:1"])
    #expect(outcome.status == .exited(1) && outcome.output.contains("start the leaf"))
    let token = machines.folder.path + "/wrong"
    try machines.folder.write("wrong", to: "wrong")
    #expect(try run("chmod", ["600", token]).status == .exited(0))
    let wrong = try doctor(machines.here, ["--token-file", token])
    #expect(wrong.status == .exited(1) && wrong.output.contains("--token-file"), "\(wrong.output)")
  }

  @Test func streamsThatAreNotAsTheSetupMakesThemAreAProblem() throws {
    guard let machines else { return }
    let server = try machines.server.connect()
    let settings =
      #"{"name":"WHF_0","subjects":["whf.0.>"],"retention":"limits","storage":"file","#
      + #""discard":"new","num_replicas":1,"max_age":604800000000000,"max_msgs":-1,"#
      + #""max_bytes":-1,"allow_direct":true,"max_msgs_per_subject":2}"#
    let reply = try server.request("$JS.hub.API.STREAM.UPDATE.WHF_0", settings)
    #expect(reply?.contains("error") == false, "\(reply ?? "no reply")")
    let changed = try doctor(machines.here)
    #expect(changed.status == .exited(1))
    #expect(changed.output.contains("max_msgs_per_subject is 2 and not 64"), "\(changed.output)")
    _ = try machines.server.connect().request("$JS.hub.API.STREAM.DELETE.WHF_0")
    let missing = try doctor(machines.here)
    #expect(missing.output.contains("stream WHF_0: is missing"), "\(missing.output)")
    #expect(missing.output.contains("wormhole bridge setup"))
  }

  /// Files of flows that are damaged, a message that is kept, a proxy without a home.
  @Test func theFilesOfTheBridgeAreInspected() throws {
    guard let machines else { return }
    let here = machines.here
    try here.kill()
    let lost = "0123456789abcdef"
    let proxy = try Carrier(here.container).proxy(of: .member("ghost"), on: lost)
    let path = here.path + "/bridge"
    let commands = [
      "cd '\(path)'", "mkdir -m 700 -p out/\(lost) in/\(lost)",
      "printf x > out/\(lost)/flow.plist", "printf x > in/\(lost)/cursor.plist",
    ]
    #expect(try run("sh", ["-c", commands.joined(separator: " && ")]).status == .exited(0))
    let outcome = try doctor(here)
    #expect(outcome.status == .exited(1))
    for part in ["bridge/out/\(lost)", "bridge/in/\(lost)"] {
      #expect(outcome.output.contains("\(part): cannot be inspected"), "\(outcome.output)")
    }
    #expect(outcome.output.contains("stands for machine \(lost), and has no home record"))
    withExtendedLifetime(proxy) {}
  }
}
