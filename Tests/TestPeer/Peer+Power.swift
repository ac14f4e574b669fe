import TestSupport
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Jobs that print which values were acknowledged, and when, for tests that cut the power.
extension Peer {
  static func acknowledge(
    _ container: String, _ channel: String, durability: Durability, times: Int
  ) throws {
    let container = try Container.open(container, options: .testing())
    let slot = try container.slot(.channels, channel)
    for _ in 0..<times {
      let begin = Instant.now.nanoseconds
      let sum = try slot.add(durability: durability)
      let end = Instant.now.nanoseconds
      try StandardStream.output.write("\(sum) \(begin) \(end)\n")
    }
  }

  static func addSaved(_ container: String, _ channel: String, times: Int) throws {
    var options = ContainerOptions.testing()
    // Values are saved by the call below alone.
    options.callLater = { _, _ in }
    let container = try Container.open(container, options: options)
    let slot = try container.slot(.channels, channel)
    for _ in 0..<times { try slot.add() }
    container.finishSaving()
    try slot.add()
    // Without the second save.
    Processes.exitAtOnce(0)
  }
}
