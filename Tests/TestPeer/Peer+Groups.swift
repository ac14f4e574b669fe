import Wormhole
import WormholeSyscalls
import WormholeTesting

/// Jobs of programs that run tests of groups.
extension Peer {
  static func testGroups(_ group: String) throws {
    // The system refuses the first call; without a fault, the container makes it.
    if Processes.environment("WORMHOLE_FAULTS") != nil { _ = try? TestGroups.use() }
    let container = try TemporaryContainer()
    try say(try SharedContainer(group: group).directory)
    let process = try TestProcess(
      "sh", ["-c", "printf %s \"$WORMHOLE_ROOT\""], in: container)
    _ = try process.exitStatus()
    try say(try process.output)
    try say(try TestGroups.use())
  }
}
