import Foundation
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs whose handlers sleep for a millisecond: four workers against one.
struct QueueSleeping: Benchmark {
  static let name = "queue-sleeping"
  static let summary = "sleeping jobs of a millisecond: four workers, against a single worker"
  static let isPaired = true
  /// On two idle processors the ratio is 3.6; programs beside the workers lower it.
  static func requiredRatio(_ size: Size) -> Double? { 2.4 }

  private let crews: Crews

  init(size: Size) throws { crews = try Crews(.sleeping) }
  func ours() throws { try crews.four.work() }
  func baseline() throws { try crews.one.work() }
}

/// Jobs whose handlers compute for a millisecond: four workers on two processors against one.
struct QueueComputing: Benchmark {
  static let name = "queue-computing"
  static let summary = "computing jobs of a millisecond: four workers, against a single worker"
  static let isPaired = true
  /// On two idle processors the ratio is 1.8; a program beside the workers takes one of the two.
  static func requiredRatio(_ size: Size) -> Double? { 1.2 }

  private let crews: Crews

  init(size: Size) throws { crews = try Crews(.computing) }
  func ours() throws { try crews.four.work() }
  func baseline() throws { try crews.one.work() }
}

/// Jobs without work: four workers, which compete for each job, against one.
struct QueueEmpty: Benchmark {
  static let name = "queue-empty"
  static let summary = "empty jobs: four competing workers, against a single worker"
  static let isPaired = true
  /// On two idle processors the ratio is 0.9 to 1.05: each job is a rename in one directory,
  /// whose lock in the kernel all workers share.
  static func requiredRatio(_ size: Size) -> Double? { 0.6 }

  private let crews: Crews

  init(size: Size) throws { crews = try Crews(.nothing) }
  func ours() throws { try crews.four.work() }
  func baseline() throws { try crews.one.work() }
}

/// Jobs without work and with ordering keys: four workers, against the same jobs without keys.
struct QueueKeyed: Benchmark {
  static let name = "queue-keyed"
  static let summary = "empty jobs of sixteen ordering keys, against jobs without keys"
  static let isPaired = true
  /// The ratio is 0.45: for each job with a key the directories of all workers are listed twice.
  static func requiredRatio(_ size: Size) -> Double? { 0.2 }

  private let keyed: Crew
  private let free: Crew

  init(size: Size) throws {
    let scratch = try Scratch()
    keyed = try Crew(4, .nothing, scratch, keys: 16)
    free = try Crew(4, .nothing, scratch, keys: 0)
  }
  func ours() throws { try keyed.work() }
  func baseline() throws { try free.work() }
}

/// The two sides of a comparison.
private final class Crews {
  let four: Crew
  let one: Crew

  init(_ job: WorkingProcess.Job) throws {
    let scratch = try Scratch()
    four = try Crew(4, job, scratch)
    one = try Crew(1, job, scratch)
  }
}

/// Some workers of one queue, each a process.
private final class Crew {
  private let scratch: Scratch
  private let queue: Queue<Int>
  private let workers: [Child]
  /// Each worker writes a byte for each job.
  private let done: WormholeSyscalls.Pipe
  private let jobs: Int
  /// How many ordering keys the jobs have; nil for jobs sent together.
  private let keys: Int?

  init(_ count: Int, _ job: WorkingProcess.Job, _ scratch: Scratch, keys: Int? = nil) throws {
    self.scratch = scratch
    self.keys = keys
    jobs = job == .nothing ? 1000 : 200
    let done = try WormholeSyscalls.Pipe()
    let name = "crew of \(count) with \(keys ?? 0) keys"
    queue = try SharedContainer(directory: scratch.path + "/holes").queue(name)
    workers = try (0..<count).map { _ in
      try WorkingProcess.start(job, scratch.path, name, output: done.writing.rawValue)
    }
    self.done = done
    // Each worker writes a byte when it is ready.
    try take(count)
    try work()
  }

  deinit {
    for worker in workers {
      try? worker.send(.kill)
      _ = try? worker.wait()
    }
  }

  /// Sends jobs, and waits until all are handled.
  func work() throws {
    var options = SendOptions()
    options.durability = .process
    if let keys {
      for job in 1...jobs {
        if keys > 0 { options.orderingKey = "key \(job % keys)" }
        try queue.send(job, options)
      }
    } else {
      try queue.send(contentsOf: Array(1...jobs), options)
    }
    try take(jobs)
  }

  private func take(_ count: Int) throws {
    var rest = count
    try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      while rest > 0 {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(rest, buffer.count)])
        rest -= try done.reading.read(into: part)
      }
    }
  }
}

/// A worker: this program, started again with a hidden argument.
enum WorkingProcess {
  static let argument = "--working-process"

  /// What a handler does.
  enum Job: String { case sleeping, computing, nothing }

  static func start(
    _ job: Job, _ path: String, _ queue: String, output: CInt
  ) throws -> Child {
    try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [argument, job.rawValue, path, queue], output: output)
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let job = Job(rawValue: arguments[0]) else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    let queue = try SharedContainer(directory: arguments[1] + "/holes")
      .queue(arguments[2], of: Int.self)
    let working = try queue.work { _, _ in
      let end = Instant.now + .milliseconds(1)
      switch job {
      case .sleeping: let _: Void? = Monitor(()).wait(until: end) { _ in nil }
      case .computing: while Instant.now < end {}
      case .nothing: break
      }
      try StandardStream.output.write(".")
    }
    try StandardStream.output.write(".")
    _ = Monitor(()).wait(until: .now + .seconds(300)) { _ in Bool?.none }
    working.stop()
  }
}
