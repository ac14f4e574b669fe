import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Two machines, of which the second one may start `bob` for the first one.
final class WakeScene {
  let folder: TemporaryDirectory
  let (here, there): (BridgedMachine, BridgedMachine)

  /// Nil, and a notice, where no server can be had.
  ///
  /// - Parameters:
  ///   - members: the members whose program is registered on the second machine.
  ///   - faults: the faults of the program.
  static func start(
    for purpose: String, _ members: [String] = ["bob"], faults: String = ""
  ) throws -> WakeScene? {
    try TestServer.start(for: purpose).map { try WakeScene($0, members, faults) }
  }

  private init(_ server: TestServer, _ members: [String], _ faults: String) throws {
    folder = try TemporaryDirectory()
    try folder.write("", to: "started")
    try BridgedMachine.setUp(server)
    here = try BridgedMachine(folder.path + "/here", server)
    there = try BridgedMachine(folder.path + "/there", server)
    for name in members {
      try there.container.registerLaunch(
        of: name, program: PeerJob.program,
        arguments: PeerJob.awaken(folder.path + "/started", name, .properly).arguments,
        environment: ["WORMHOLE_FAULTS": faults])
    }
    try here.start()
    try startThere()
    for name in members {
      // The first join makes the machine the home.
      let member = try there.container.join(as: name)
      try here.waitUntilRunning(name)
      member.leave()
    }
    for name in members { try here.waitUntilRunning(name, false) }
  }

  /// Starts the bridge that may start `bob`.
  func startThere() throws { try there.start(["--may-wake", "bob"]) }

  func kill(_ machine: BridgedMachine) throws {
    try machine.kill()
    try eventually("the bridge has ended", within: .seconds(30)) {
      machine.bridge?.hasEnded == true
    }
  }

  /// Starts a process that wakes `bob` from the first machine.
  func wake(milliseconds: Int = 120_000) throws -> Running {
    try Running(.wake(here.path, "bob", milliseconds: milliseconds))
  }

  /// The processes of the programs that were started.
  func started() throws -> [Int32] {
    try folder.read("started").split(separator: "\n").compactMap {
      $0.split(separator: " ").first.flatMap { Int32($0) }
    }
  }

  /// Lets the started programs end.
  func end() throws { try folder.descriptor.unlink("started") }
}
