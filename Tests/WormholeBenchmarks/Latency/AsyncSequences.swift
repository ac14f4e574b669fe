import Wormhole
import WormholeSyscalls

/// The time from a put in one process to the iteration of a task in another process, there and
/// back, against watchers with closures.
///
/// A task iterates over the snapshots of a channel, and puts the next number with `await`. The put
/// is made on a thread of the library, so each direction wakes more threads than with closures. In
/// the small size both processes share a processor; in the large size each process has its own.
struct AsyncSequences: Benchmark {
  static let isGated = false
  static let name = "async-sequence"
  static let summary = "ten times there and back between iterating tasks, against closures"
  static let isPaired = true

  private let tasks: IteratingTasks
  private let channels: Answering
  private let scratch: Scratch

  init(size: Size) throws {
    scratch = try Scratch()
    EchoProcess.pin(0)
    tasks = try IteratingTasks(scratch.path, .init(size))
    channels = try Answering(scratch.path, .init(size))
    for _ in 0..<5 {
      try ours()
      try baseline()
    }
  }

  func ours() throws { try tasks.exchange() }
  func baseline() throws { try channels.exchange() }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Details come last; other workloads may use both processors.
    let iterated = try Measurement.measure(for: .milliseconds(200)) { try ours() }
    let watched = try Measurement.measure(for: .milliseconds(200)) { try baseline() }
    return [
      Detail("one way, us", iterated.median / Double(2000 * PutToWatch.rally)),
      Detail("one way with closures, us", watched.median / Double(2000 * PutToWatch.rally)),
      Detail("times the closures", iterated.median / watched.median),
    ]
  }
}

/// Both ends of the exchange through asynchronous sequences.
final class IteratingTasks {
  private let there: Channel<Int>
  private let heard: Rally
  private let task: Task<Void, any Error>
  private let other: Child

  init(_ path: String, _ placement: EchoProcess.Placement) throws {
    let container = try SharedContainer(directory: path + "/tasks")
    let there = container.channel("there", of: Int.self)
    let heard = Rally()
    task = Self.iterate(container.channel("back", of: Int.self)) { number in
      if let next = heard.next(after: number) { try await there.put(next) }
    }
    (self.there, self.heard) = (there, heard)
    other = try EchoProcess.start("tasks", placement, path)
    // Before the second process iterates, only a repeated put is sure to arrive.
    let deadline = ContinuousClock.now + .seconds(10)
    while try !isAnswered(rally: 1, within: .milliseconds(50)) {
      guard ContinuousClock.now < deadline else {
        throw BenchmarkError.nothingMeasured(AsyncSequences.name)
      }
    }
  }

  deinit {
    task.cancel()
    try? other.send(.kill)
    _ = try? other.wait()
  }

  func exchange() throws {
    guard try isAnswered(rally: PutToWatch.rally, within: .seconds(5)) else {
      throw BenchmarkError.nothingMeasured(AsyncSequences.name)
    }
  }

  private func isAnswered(rally: Int, within time: Duration) throws -> Bool {
    try heard.isAnswered(rally, within: time) { try there.put($0) }
  }

  /// Starts a task that replies to each number of a channel.
  private static func iterate(
    _ channel: Channel<Int>, _ reply: @escaping @Sendable (Int) async throws -> Void
  ) -> Task<Void, any Error> {
    let snapshots = channel.snapshots()
    return Task {
      for try await snapshot in snapshots {
        if let number = snapshot.value { try await reply(number) }
      }
    }
  }

  /// Runs in the second process.
  static func echo(_ path: String) throws {
    let container = try SharedContainer(directory: path + "/tasks")
    let back = container.channel("back", of: Int.self)
    let task = iterate(container.channel("there", of: Int.self)) { number in
      try await back.put(number)
    }
    _ = Monitor(()).wait(until: .now + .seconds(120)) { _ in Bool?.none }
    task.cancel()
  }
}
