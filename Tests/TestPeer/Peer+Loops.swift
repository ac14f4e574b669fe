import TestSupport
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that many processes do concurrently, again and again.
extension Peer {
  static func addBetween(
    _ container: String, _ channel: String, log: String, start: Int64, end: Int64
  ) throws {
    let container = try Container.open(container, options: .testing())
    let slot = try container.slot(.channels, channel)
    let file = try Descriptor.open(
      path: log, [.writeOnly, .create, .append], mode: 0o600)
    let start = Instant(nanoseconds: start)
    let end = Instant(nanoseconds: end)
    let _: Void? = Monitor(()).wait(until: start) { _ in nil }
    var count = 0
    var longest = Duration.zero
    var now = Instant.now
    while now < end {
      try file.write("\(try slot.add())\n")
      let after = Instant.now
      longest = max(longest, after - now)
      count += 1
      now = after
    }
    try StandardStream.output.write("\(count) \(longest.inNanoseconds)\n")
  }

  static func forkInside(_ container: String, _ channel: String) throws {
    try linger(inside: container, channel) { forking_copy() }
  }

  static func spawnInside(_ container: String, _ channel: String) throws {
    try linger(inside: container, channel) {
      try Child.spawn(CommandLine.arguments[0], PeerJob.linger.arguments).process
    }
  }

  static func linger() throws {
    try StandardStream.output.write("lingering\n")
    waitToBeKilled()
  }

  static func printLine(_ line: String, times: Int, killsItself: Bool) throws {
    for _ in 0..<times { print(line) }
    if killsItself { try Processes.send(.kill, to: Processes.current) }
    waitToBeKilled()
  }

  private static func linger(
    inside path: String, _ channel: String, _ start: () throws -> Int32
  ) throws {
    let container = try Container.open(path, options: .testing())
    let slot = try container.slot(.channels, channel)
    try slot.change("update") { _ in
      try StandardStream.output.write("\(try start())\n")
      waitToBeKilled()
      return .none
    }
  }
}
