import PropertyLists
import SharedContainer
import Syscalls
import TestSupport

/// Jobs on a container. Each begins with opening it, which makes it if need be.
extension Peer {
  /// Opens a container: `open <container>`.
  static let open = Job("open") { arguments in
    _ = try Container.open(arguments[0], options: .testing())
    try say("done")
  }

  /// `add <container> <channel> <times> [power]`: adds 1 that many times, saying each time what the
  /// number then was.
  static let add = Job("add") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let slot = try container.slot(.channels, arguments[1])
    let durability: Durability = arguments.count > 3 ? .power : .process
    for _ in 0..<Int(arguments[2])! {
      let sum = try slot.add(durability: durability)
      try say("\(sum)")
    }
  }

  /// Says the number that is there: `read <container> <channel>`.
  static let readSlot = Job("read") { arguments in
    let container = try Container.open(arguments[0], create: false, options: .testing())
    try say("\(try container.slot(.channels, arguments[1]).number())")
  }

  /// `stop-inside <container> <channel>`: stops itself inside an update.
  static let stopInside = Job("stop-inside") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let slot = try container.slot(.channels, arguments[1])
    try slot.change("update") { content in
      try Processes.send(.stop, to: Processes.current)
      return .put(try BinaryEncoder().encode(try Slot.number(in: content) + 1))
    }
    try say("done")
  }

  /// `hold-lock <container> <name>`: stops itself while it holds a named lock, and says afterwards
  /// whether it was superseded.
  static let holdLock = Job("hold-lock") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let held = try container.slot(.system, arguments[1]).hold("lock") { _ in
      try Processes.send(.stop, to: Processes.current)
    }
    try say(held.wasSuperseded ? "superseded" : "held")
  }
}
