import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that meet a directory with an unexpected object in it.
extension Peer {
  static func probe(_ container: String, _ channel: String) throws {
    var opened: Container?
    try report("open") {
      opened = try Container.open(container, create: false, options: .testing())
    }
    guard let container = opened else { return }
    let slot = try container.slot(.channels, channel)
    try report("names") { _ = try container.names(in: .channels) }
    try report("read") { _ = try slot.number() }
    try report("add") { try slot.add(patience: Patience(until: .now + .seconds(5))) }
    try report("power") {
      try slot.add(durability: .power, patience: Patience(until: .now + .seconds(5)))
    }
  }

  private static func report(_ step: String, _ body: () throws -> Void) throws {
    let result: String
    do {
      try body()
      result = "done"
    } catch let error as WormholeError {
      result = "\(error.code.rawValue): \(error)"
    }
    try StandardStream.output.write("\(step) \(result)\n")
  }
}
