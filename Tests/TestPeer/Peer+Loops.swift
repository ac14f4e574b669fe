import CForking
import SharedContainer
import Syscalls
import TestSupport

/// Jobs that many processes do at once, again and again.
extension Peer {
  /// `add-between <container> <channel> <file> <start> <end>`: adds 1 as often as it can between
  /// two moments of the monotonic clock.
  ///
  /// Each sum goes to the file as soon as it is known, a line each; in the end it says how many
  /// there were, and how many nanoseconds the longest took.
  static let addBetween = Job("add-between") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let slot = try container.slot(.channels, arguments[1])
    let file = try Descriptor.open(
      path: arguments[2], [.writeOnly, .create, .append], mode: 0o600)
    let start = Instant(nanoseconds: Int64(arguments[3])!)
    let end = Instant(nanoseconds: Int64(arguments[4])!)
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

  /// Takes the lock, does as a library might that forks, and waits: `fork-inside <container>
  /// <channel>`.
  ///
  /// It says the number of its copy.
  static let forkInside = Job("fork-inside") { arguments in
    try linger(inside: arguments) { forking_copy() }
  }

  /// Takes the lock, starts a program that waits, and waits: `spawn-inside <container> <channel>`.
  ///
  /// It says the number of the program.
  static let spawnInside = Job("spawn-inside") { arguments in
    try linger(inside: arguments) {
      try Child.spawn(CommandLine.arguments[0], ["linger"]).process
    }
  }

  /// Says that it is there, and waits for a minute: `linger`.
  static let linger = Job("linger") { _ in
    try StandardStream.output.write("lingering\n")
    wait()
  }

  private static func linger(
    inside arguments: [String], _ start: () throws -> Int32
  ) throws {
    let container = try Container.open(arguments[0], options: .testing())
    let slot = try container.slot(.channels, arguments[1])
    try slot.change("update") { _ in
      try StandardStream.output.write("\(try start())\n")
      wait()
      return .none
    }
  }

  private static func wait() {
    let _: Void? = Monitor(()).wait(until: .now + .seconds(60)) { _ in nil }
  }
}
