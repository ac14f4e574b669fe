import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Jobs on a container. Each job first opens the container, and creates it if it is missing.
extension Peer {
  static func open(_ container: String) throws {
    _ = try Container.open(container, options: .testing())
    try say("done")
  }

  static func add(_ container: String, _ channel: String, times: Int, durability: Durability) throws
  {
    let container = try Container.open(container, options: .testing())
    let slot = try container.slot(.channels, channel)
    for _ in 0..<times {
      let sum = try slot.add(durability: durability)
      try say("\(sum)")
    }
  }

  static func readSlot(_ container: String, _ channel: String) throws {
    let container = try Container.open(container, create: false, options: .testing())
    try say("\(try container.slot(.channels, channel).number())")
  }

  static func stopInside(_ container: String, _ channel: String) throws {
    let container = try Container.open(container, options: .testing())
    let slot = try container.slot(.channels, channel)
    try slot.change("update") { content in
      try Processes.send(.stop, to: Processes.current)
      return .put(try BinaryEncoder().encode(try Slot.number(in: content) + 1))
    }
    try say("done")
  }

  static func move(_ container: String, from: String, to: String) throws {
    let container = try Container.open(container, options: .testing())
    do {
      try container.move([try container.slot(.channels, from), try container.slot(.channels, to)])
    } catch let error as WormholeError {
      return try say(error.code.rawValue)
    }
    try say("done")
  }

  static func holdLock(_ container: String, _ name: String) throws {
    let container = try Container.open(container, options: .testing())
    let held = try container.slot(.system, name).hold("lock") { _ in
      try Processes.send(.stop, to: Processes.current)
    }
    try say(held.wasSuperseded ? "superseded" : "held")
  }

  static func holdNamedLock(_ container: String, _ name: String) throws {
    var options = Options()
    options.lease = .milliseconds(50)
    let container = try SharedContainer(directory: container, options: options)
    do {
      try container.lock(name).hold {
        try Processes.send(.stop, to: Processes.current)
        if name == "refusing" { throw Errno.busy }
      }
      try say("held")
    } catch is Errno {
      try say("refused")
    } catch let error as WormholeError where error.code == .superseded {
      try say("superseded")
    }
  }
}
