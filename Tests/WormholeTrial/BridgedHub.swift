import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A hub of three servers, and machines, each with a leaf, a container and a bridge of the command.
final class BridgedHub {
  /// A machine: its container, and the process of its bridge.
  final class Machine {
    let node: TestHub.Node
    let path: String
    let container: SharedContainer
    /// The member whose home the machine is.
    let member: String
    fileprivate(set) var bridge: Running?

    fileprivate init(_ node: TestHub.Node, _ number: Int, _ hub: TestHub) throws {
      self.node = node
      path = hub.directory(of: node) + "/container"
      member = "r\(number)"
      container = try SharedContainer(directory: path)
    }

    /// The names in a directory of the container; empty if there is no such directory.
    func names(_ folder: String) throws -> [String] {
      do {
        return try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).names()
      } catch Errno.noSuchFile {
        return []
      }
    }

    /// What is still on its way, or waits: records, refusals, messages in inboxes and in transit.
    func pending() throws -> [String] {
      var found: [String] = []
      for other in try names("bridge/out") {
        found += try names("bridge/out/\(other)").filter { $0 != "flow.plist" }
      }
      for member in try names("members") {
        for part in ["inbox", "claimed"] { found += try names("members/\(member)/\(part)") }
      }
      return found
    }
  }

  let hub: TestHub
  let machines: [Machine]

  /// Nil, and a notice, where no servers can be had.
  static func start(_ count: Int, for what: String) throws -> BridgedHub? {
    try TestHub.start(TestHub.Options(machines: count), for: what).map { try BridgedHub($0) }
  }

  init(_ hub: TestHub) throws {
    self.hub = hub
    machines = try hub.machines.enumerated().map { try Machine($1, $0, hub) }
    try setUp()
    for machine in machines { try startBridge(of: machine) }
  }

  private func server(_ machine: Machine) -> [String] {
    [
      "--nats", hub.address(of: machine.node), "--token-file", hub.tokenFile, "--domain", "hub",
    ]
  }

  /// Creates the streams, as an operator does, also again after their loss.
  func setUp() throws {
    try eventually("the streams are made", within: .seconds(120)) {
      let outcome = try hub.run(
        in: machines[0].node, Programs.built("wormhole"),
        ["bridge", "setup", "--timeout", "60"] + server(machines[0]), within: .seconds(90))
      return outcome.status == .exited(0)
    }
  }

  /// Starts the bridge of a machine, which must not run, and does not wait for it.
  func startBridge(of machine: Machine) throws {
    machine.bridge = try hub.start(
      in: machine.node, Programs.built("wormhole"),
      ["--container", machine.path, "bridge", "--shared-as", "g"] + server(machine))
  }

  func killBridge(of machine: Machine) throws {
    guard let bridge = machine.bridge else { return }
    if !bridge.hasEnded { try? bridge.child.send(.kill) }
    _ = try bridge.outcome()
    machine.bridge = nil
  }

  /// Waits until each machine shows the members of the others as running.
  func waitUntilAllAreSeen() throws {
    for machine in machines {
      for other in machines where other !== machine {
        try eventually("\(other.member) is seen on \(machine.node)", within: .seconds(120)) {
          try machine.container.peer(other.member).reachability == .running
        }
      }
    }
  }

  /// What the bridges state, for the message of a test that fails.
  func report() throws -> String {
    try machines.map { machine in
      let status = try run(
        Programs.built("wormhole"), ["--container", machine.path, "bridge", "status"])
      return "\(machine.node): \(status.output)\(try machine.bridge?.errors.suffix(2000) ?? "")"
    }.joined(separator: "\n")
  }
}
