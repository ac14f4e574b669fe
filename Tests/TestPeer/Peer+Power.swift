import PropertyLists
import SharedContainer
import Syscalls
import TestSupport

/// Jobs that say what was acknowledged, and when, for tests that cut the power.
extension Peer {
  /// `acknowledge <container> <channel> <process|power> <times>`: adds 1 that many times, and says
  /// after each what the number then was, and when the change began and ended.
  static let acknowledge = Job("acknowledge") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let slot = try container.slot(.channels, arguments[1])
    let durability: Durability = arguments[2] == "power" ? .power : .process
    for _ in 0..<Int(arguments[3])! {
      let begin = Instant.now.nanoseconds
      let sum = try slot.add(durability: durability)
      let end = Instant.now.nanoseconds
      try StandardStream.output.write("\(sum) \(begin) \(end)\n")
    }
  }
}
