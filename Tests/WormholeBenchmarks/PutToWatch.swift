import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// The time from a put in one process to the call of a watcher in another process, there and back.
///
/// Each watcher replies from its closure, so only the transmission is measured: the thread that
/// waits for the end of a rally is woken once. In the small size both processes share a processor;
/// in the large size each process has its own, and the details repeat the measurement with two
/// processes without a binding.
struct PutToWatch: Benchmark {
  static let name = "put-to-watch"
  static let summary = "ten times there and back between processes, against the bare calls in C"
  static let isPaired = true
  /// The number of round trips of a rally.
  static let rally = 10

  private let size: Size
  private let channels: Answering
  private let floor: FloorAnswering
  private let scratch: Scratch

  init(size: Size) throws {
    self.size = size
    scratch = try Scratch()
    EchoProcess.pin(0)
    channels = try Answering(scratch.path, .init(size))
    floor = try FloorAnswering(scratch.path, .init(size))
    for _ in 0..<5 {
      try channels.exchange()
      try floor.exchange()
    }
  }

  func ours() throws { try channels.exchange() }
  func baseline() throws { try floor.exchange() }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Details come last; other workloads may use both processors.
    let times = try Self.times(channels, floor)
    // The counts of this process: ten puts, and the reads of ten replies.
    let counts = [
      try Detail.calls("calls, ten times there and back", limit: 230) { try channels.exchange() },
      Detail(
        "allocations, ten times there and back",
        try Allocations.count { try channels.exchange() } ?? 0, limit: 300),
    ]
    return try counts + times + (size == .large ? Self.unboundTimes() : [])
  }

  private static func times(
    _ channels: Answering, _ floor: FloorAnswering, _ note: String = ""
  ) throws -> [Detail] {
    let there = try Measurement.measure(for: .milliseconds(200)) { try channels.exchange() }
    let bare = try Measurement.measure(for: .milliseconds(200)) { try floor.exchange() }
    return [
      Detail("one way\(note), us", there.median / Double(2000 * rally)),
      Detail("one way with the bare calls\(note), us", bare.median / Double(2000 * rally)),
      Detail("times the bare calls\(note)", there.median / bare.median),
    ]
  }

  /// Measures a further pair of processes for each side, bound to no processor.
  private static func unboundTimes() throws -> [Detail] {
    EchoProcess.pin(-1)
    let scratch = try Scratch()
    defer { withExtendedLifetime(scratch) {} }
    let channels = try Answering(scratch.path, .unbound)
    let floor = try FloorAnswering(scratch.path, .unbound)
    for _ in 0..<5 {
      try channels.exchange()
      try floor.exchange()
    }
    return try times(channels, floor, ", unbound")
  }
}

/// The second process: this program, started again with a hidden argument.
///
/// The process replies to each number.
enum EchoProcess {
  static let argument = "--echoing-process"

  /// The processor of the second process: shared with the first process, the next, or any.
  enum Placement: String {
    case same, next, unbound

    init(_ size: Size) { self = size == .small ? .same : .next }

    var processor: Int32 {
      switch self {
      case .same: 0
      case .next: 1
      case .unbound: -1
      }
    }
  }

  static func start(_ side: String, _ placement: Placement, _ path: String) throws -> Child {
    try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [argument, side, placement.rawValue, path])
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let placement = Placement(rawValue: arguments[1]) else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    pin(placement.processor)
    if arguments[0] == "floor" {
      try FloorAnswering.echo(arguments[2])
    } else if arguments[0] == "pass" {
      try Passing.echo(arguments[2])
    } else if arguments[0] == "tasks" {
      try IteratingTasks.echo(arguments[2])
    } else {
      try Answering.echo(arguments[2], onQueue: arguments[0] == "queue")
    }
  }

  /// On a host with a single processor the call fails, and the failure is ignored.
  static func pin(_ processor: Int32) { _ = floor_pin(processor) }
}

/// Both ends of the exchange through channels.
final class Answering {
  private let there: Channel<Int>
  private let watching: Subscription
  private let heard: Rally
  private let other: Child

  /// - Parameter onQueue: whether both watchers are called on a queue of their own.
  init(_ path: String, _ placement: EchoProcess.Placement, onQueue: Bool = false) throws {
    let container = try SharedContainer(directory: path + "/holes")
    let there = container.channel("there", of: Int.self)
    let heard = Rally()
    let queue = Self.queue(onQueue)
    watching = try container.channel("back", of: Int.self).watch(on: queue) { snapshot in
      if let next = heard.next(after: snapshot.value ?? 0) { _ = try? there.put(next) }
    }
    (self.there, self.heard) = (there, heard)
    other = try EchoProcess.start(onQueue ? "queue" : "ours", placement, path)
    // Before the second process watches, only a repeated put is sure to arrive.
    while try !isAnswered(rally: 1, within: .milliseconds(50)) {}
  }

  deinit {
    try? other.send(.kill)
    _ = try? other.wait()
  }

  func exchange(rally: Int = PutToWatch.rally) throws {
    guard try isAnswered(rally: rally, within: .seconds(5)) else {
      throw BenchmarkError.nothingMeasured(PutToWatch.name)
    }
  }

  private func isAnswered(rally: Int, within time: Duration) throws -> Bool {
    try heard.isAnswered(rally, within: time) { try there.put($0) }
  }

  private static func queue(_ isWanted: Bool) -> DispatchQueue? {
    isWanted ? DispatchQueue(label: "watcher") : nil
  }

  static func echo(_ path: String, onQueue: Bool = false) throws {
    let container = try SharedContainer(directory: path + "/holes")
    let back = container.channel("back", of: Int.self)
    let there = container.channel("there", of: Int.self)
    let watching = try there.watch(on: queue(onQueue)) { snapshot in
      if let number = snapshot.value { _ = try? back.put(number) }
    }
    _ = Monitor(()).wait(until: .now + .seconds(120)) { _ in Bool?.none }
    watching.stop()
  }
}

/// Both ends of the exchange with bare calls.
final class FloorAnswering {
  private var there = floor_bell()
  private var back = floor_bell()
  private let other: Child
  private var number: Int64 = 0

  init(_ path: String, _ placement: EchoProcess.Placement) throws {
    guard floor_bell_open(&there, path + "/there") == 0,
      floor_bell_open(&back, path + "/back") == 0
    else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
    other = try EchoProcess.start("floor", placement, path)
    // The second process rings once when it listens.
    guard floor_hear(&back, -1) >= 0 else { throw BenchmarkError.floor("hear") }
  }

  deinit {
    try? other.send(.kill)
    _ = try? other.wait()
    floor_bell_close(&there)
    floor_bell_close(&back)
  }

  func exchange(rally: Int = PutToWatch.rally) throws {
    for _ in 0..<rally {
      number += 1
      guard floor_ring(&there, number) == 0, floor_hear(&back, number - 1) == number else {
        throw BenchmarkError.floor(String(cString: strerror(errno)))
      }
    }
  }

  static func echo(_ path: String) throws {
    var there = floor_bell()
    var back = floor_bell()
    guard floor_bell_open(&there, path + "/there") == 0,
      floor_bell_open(&back, path + "/back") == 0, floor_ring(&back, 0) == 0
    else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
    var number: Int64 = 0
    while true {
      number = floor_hear(&there, number)
      guard number >= 0, floor_ring(&back, number) == 0 else { return }
    }
  }
}
