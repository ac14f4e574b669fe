import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// Processes that add to one number as often as they can, and the results of each process.
final class Crowd {
  /// The report of one process when its time was up.
  struct Share {
    var count: Int
    var longest: Duration
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static let lease = Duration.milliseconds(50)

  let start: Instant
  let end: Instant
  private let container: Container
  private let folder: TemporaryDirectory
  private var started = 0
  private(set) var members: [Running] = []

  /// Starts `size` processes, which begin together and add until the time has passed.
  init(_ size: Int, for time: Duration) throws {
    folder = try TemporaryDirectory()
    container = try Container.open(folder.path + "/c", options: .testing(lease: Self.lease))
    start = .now + .milliseconds(400)
    end = start + time
    for _ in 0..<size { members.append(try startOne()) }
  }

  private func startOne() throws -> Running {
    started += 1
    return try Running(
      .addBetween(
        container.path, "n", log: "\(folder.path)/sums.\(started)", start: start.nanoseconds,
        end: end.nanoseconds))
  }

  /// Kills a process, and puts another in its place.
  func replace(_ index: Int) throws {
    try? members[index].child.send(.kill)
    let outcome = try members[index].outcome()
    guard outcome.status == .signalled(9) else {
      throw Failure(description: "a process ended before it was killed: \(outcome.errors)")
    }
    members[index] = try startOne()
  }

  /// Waits until the time is up for all processes, and reads each report.
  func shares() throws -> [Share] {
    try members.map { member in
      let outcome = try member.outcome(within: (end - .now) + patience)
      let words = outcome.output.split(whereSeparator: \.isWhitespace).compactMap { Int64($0) }
      guard outcome.status == .exited(0), words.count == 2 else {
        throw Failure(description: "a process ended with \(outcome.status): \(outcome.errors)")
      }
      return Share(count: Int(words[0]), longest: .nanoseconds(words[1]))
    }
  }

  /// Every sum that a process, killed processes included, has received.
  func acknowledged() -> [Int] {
    (1...started).flatMap { number in
      guard let text = try? folder.read("sums.\(number)") else { return [Int]() }
      // A process that was killed while it wrote may have left half a line.
      let whole =
        text.last == "\n" ? text[...] : text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
      return whole.split(separator: "\n").compactMap { Int($0) }
    }
  }

  func sum() throws -> Int { try container.slot(.channels, "n").number() }
}
