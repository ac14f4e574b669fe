import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that coordinate. WORMHOLE_ROOT names the root of the groups.
extension Peer {
  static func coordinate(
    _ kind: PeerJob.Coordination, _ path: String, _ what: PeerJob.Inside,
    takeOverAfter takeOver: Duration?
  ) throws {
    let coordinator = Coordinator(
      purpose: Processes.environment("WORMHOLE_PURPOSE"),
      Arbiters(.testing(lease: .seconds(1)), root: nil))
    func inside(_ path: String) throws {
      try say("inside")
      switch what {
      case .nothing: break
      case .stop:
        try Processes.send(.stop, to: Processes.current)
        if kind != .read { try write("late", path) }
      case .linger:
        waitToBeKilled()
      case .write(let text): try write(text, path)
      }
    }
    do {
      switch kind {
      case .read: try coordinator.read(path, takeOverAfter: takeOver, inside)
      case .write: try coordinator.write(path, takeOverAfter: takeOver, inside)
      case .replace:
        try coordinator.replace(path, takeOverAfter: takeOver) { new, _ in try inside(new) }
      }
      try say("done")
    } catch let error as WormholeError {
      try say("\(error.code)")
      try say("\(error)", on: .error)
      Processes.exit(70)
    }
  }

  private static func write(_ text: String, _ path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.write(text)
  }

  static func moveInside(_ path: String, to new: String) throws {
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(1)), root: nil))
    try coordinator.access([.writing(path), .writing(new)]) { access in
      let (old, place) = (UserPath(access.paths[0]), UserPath(access.paths[1]))
      try old.openParent().rename(old.name, to: place.openParent(), place.name)
      try access.moved(access.paths[0], to: access.paths[1])
      try say("moved")
    }
    try say("done")
  }

  static func coordinateAdd(_ path: String, times: Int) throws {
    // No process is suspended meanwhile, and on a busy machine each may be starved.
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(10)), root: nil))
    for _ in 0..<times {
      try coordinator.write(path) { path in
        let file = try Descriptor.open(path: path, [.readWrite, .create], mode: 0o600)
        let number = Int(String(decoding: try file.contents(), as: UTF8.self)) ?? 0
        try write("\(number + 1)", path)
      }
    }
  }
}
