import TestSupport
import Testing
import WatchConnectivity

/// Both sides of a pairing as processes, in a container of their own.
struct SideProcesses {
  let folder: TemporaryDirectory
  let container: String
  let pairing: Pairing

  init() throws {
    folder = try TemporaryDirectory()
    container = folder.path + "/container"
    pairing = try Pairing(directory: container)
  }

  func start(
    _ role: String, _ steps: [String], faults: String = "", settings: [String] = []
  ) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), ["session"] + steps,
      environment: [
        "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
        "WORMHOLE_FAULTS=\(faults)",
      ] + settings)
  }

  /// Waits until the program has written all these lines.
  func wait(_ program: Running, _ lines: [String]) throws {
    do {
      try eventually("\(lines)") {
        let heard = Set(try program.output.split(separator: "\n").map(String.init))
        return heard.isSuperset(of: lines)
      }
    } catch {
      Issue.record("wanted \(lines), and it wrote: \(try program.output) \(try program.errors)")
    }
  }
}
