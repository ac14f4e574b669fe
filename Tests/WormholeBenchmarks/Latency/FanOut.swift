import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// The time from a put until the last of several watching processes has received the value.
///
/// Each watching process writes one byte to a pipe that all of them share. The small size has two
/// processes; the large size has ten, and its details add one and a hundred.
struct FanOut: Benchmark {
  static let isGated = false
  static let name = "fan-out"
  static let summary = "a put until the last of several watching processes, against C"
  static let isPaired = true

  private let size: Size
  private let scratch: Scratch
  private let both: Watched

  init(size: Size) throws {
    self.size = size
    scratch = try Scratch()
    both = try Watched(scratch.path + "/first", by: size == .small ? 2 : 10)
  }

  func ours() throws { try both.ours.exchange() }
  func baseline() throws { try both.floor.exchange() }

  /// Measured last, and one side after the other: a user may have 128 instances of inotify.
  func details() throws -> [Detail] {
    both.end()
    var details: [Detail] = []
    for count in size == .small ? [1] : [1, 100] {
      let path = "\(scratch.path)/\(count)"
      let there = try measured(.ours(path + "ours", count))
      let bare = try measured(Watched.floor(path + "floor", count))
      details += [
        Detail("last of \(count), us", there.median / 1000),
        Detail("last of \(count), slowest, us", there.slowest / 1000),
        Detail("last of \(count), times the bare calls", there.median / bare.median),
      ]
    }
    return details
  }

  private func measured(_ processes: WatchingProcesses) throws -> Measurement {
    try Measurement.measure(for: size.duration) { try processes.exchange() }
  }

  /// The same number of processes for each side.
  private struct Watched {
    let ours: WatchingProcesses
    let floor: WatchingProcesses

    init(_ path: String, by count: Int) throws {
      ours = try .ours(path, count)
      floor = try Self.floor(path, count)
    }

    func end() {
      ours.end()
      floor.end()
    }

    static func floor(_ path: String, _ count: Int) throws -> WatchingProcesses {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      let bell = Bell()
      try bell.open(path)
      return try WatchingProcesses([WatchingProcess.argument, "floor", path], count) {
        try bell.ring($0)
      }
    }
  }
}

/// A bell of the baseline that closes itself.
private final class Bell {
  private var bell = floor_bell()

  func open(_ path: String) throws {
    guard floor_bell_open(&bell, path + "/bell") == 0 else { throw BenchmarkError.floor("bell") }
  }

  func ring(_ number: Int) throws {
    guard floor_ring(&bell, Int64(number)) == 0 else { throw BenchmarkError.floor("ring") }
  }

  func hear(after number: Int64) throws -> Int64 {
    let heard = floor_hear(&bell, number)
    guard heard >= 0 else { throw BenchmarkError.floor("hear") }
    return heard
  }

  deinit { floor_bell_close(&bell) }
}

/// Several processes that watch the same value.
final class WatchingProcesses {
  private var children: [Child]
  private let replies: WormholeSyscalls.Pipe
  private let put: (Int) throws -> Void
  private var number = 0

  /// - Parameter arguments: the arguments of each process. The process writes a byte when watching,
  ///   and a byte for each number.
  init(_ arguments: [String], _ count: Int, put: @escaping (Int) throws -> Void) throws {
    replies = try WormholeSyscalls.Pipe()
    self.put = put
    var children: [Child] = []
    for _ in 0..<count {
      children.append(
        try Child.spawn(
          Bundle.main.executablePath ?? CommandLine.arguments[0], arguments,
          output: replies.writing.rawValue))
    }
    self.children = children
    // Each process replies once when it watches.
    try hear()
    for _ in 0..<3 { try exchange() }
  }

  static func ours(_ path: String, _ count: Int) throws -> WatchingProcesses {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let channel = try SharedContainer(directory: path + "/holes").channel("there", of: Int.self)
    return try WatchingProcesses([WatchingProcess.argument, "ours", path], count) {
      _ = try channel.put($0)
    }
  }

  deinit { end() }

  func end() {
    for child in children {
      try? child.send(.kill)
      _ = try? child.wait()
    }
    children = []
  }

  func exchange() throws {
    number += 1
    try put(number)
    try hear()
  }

  private func hear() throws {
    var left = children.count
    try withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { buffer in
      while left > 0 {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(left, 128)])
        let count = try replies.reading.read(into: part)
        guard count > 0 else { throw BenchmarkError.nothingMeasured(FanOut.name) }
        left -= count
      }
    }
  }
}

/// A watching process: this program, started again with a hidden argument.
enum WatchingProcess {
  static let argument = "--watching-process"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2 else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    if arguments[0] == "floor" { return try watchFloor(arguments[1]) }
    let channel = try SharedContainer(directory: arguments[1] + "/holes")
      .channel("there", of: Int.self)
    let watching = try channel.watch(initial: false) { _ in reply() }
    reply()
    _ = Monitor(()).wait(until: .now + .seconds(120)) { _ in Bool?.none }
    watching.stop()
  }

  private static func watchFloor(_ path: String) throws {
    let bell = Bell()
    try bell.open(path)
    reply()
    var number: Int64 = 0
    while true {
      number = try bell.hear(after: number)
      reply()
    }
  }

  private static func reply() { try? StandardStream.output.write([1]) }
}
