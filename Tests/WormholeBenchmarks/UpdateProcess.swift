import Foundation
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A process that updates as often as possible: this program, started again with a hidden argument.
///
/// The process reports when it is ready, starts on command, and finally reports the number of its
/// updates, its longest wait for an update and its share of a processor.
enum UpdateProcess {
  /// The implementation that updates; `idle` counts in memory, and takes no lock.
  enum Side: String {
    case ours, floor, replace, database, idle
    /// The sides of the workload `update`.
    static let usual: [Side] = [.ours, .floor, .replace]
  }

  static let argument = "--updating-process"

  /// The report of a process.
  struct Share: Codable {
    var count = 0
    /// The longest wait for an update, in nanoseconds.
    var longest = 0.0
    /// The part of the time in which the process had a processor.
    var processor = 0.0
  }

  /// Returns the rate of several processes together, the share of the least served process relative
  /// to the most served, and the longest wait of any process for its turn.
  static func measure(_ side: Side, _ size: Size, processes: Int) throws -> [Detail] {
    let seconds: Double = size == .small ? 0.1 : 2
    let shares = try shares(side, size, processes: processes, seconds: seconds)
    let counts = shares.map(\.count)
    let label = "\(side.rawValue), \(processes) process\(processes == 1 ? "" : "es")"
    let rate = Detail(label + ": updates a second", Double(counts.reduce(0, +)) / seconds)
    guard processes > 1 else { return [rate] }
    return [
      rate,
      Detail(label + ": least to most served", Double(counts.min()!) / Double(counts.max()!)),
      Detail(label + ": longest wait, ms", shares.map(\.longest).max()! / 1e6),
    ]
  }

  /// Lets several processes update for the given time, and returns their reports.
  static func shares(
    _ side: Side, _ size: Size, processes: Int, seconds: Double
  ) throws -> [Share] {
    let scratch = try Scratch()
    let start = try number(side, size, scratch)
    var children: [UpdatingChild] = []
    for _ in 0..<processes { children.append(try UpdatingChild(side, size, scratch, seconds)) }
    for child in children { try child.hear("ready\n") }
    for child in children { try child.say("go\n") }
    let shares = try children.map { try JSONDecoder().decode(Share.self, from: $0.rest()) }
    let total = side == .idle ? 0 : shares.map(\.count).reduce(0, +)
    try Sample.check(try number(side, size, scratch) == start + total, Update.name)
    return shares
  }

  private static func number(_ side: Side, _ size: Size, _ scratch: Scratch) throws -> Int {
    if side == .idle { return 0 }
    if side == .database { return try Database(scratch.path).number() }
    if side != .ours { return try scratch.floor(size).number() }
    let slot = try scratch.slot()
    if case .nothing = try slot.read() { try slot.addOne(size) }
    return try slot.number()
  }

  /// Runs as the process that was started with the hidden argument.
  static func run(_ arguments: [String]) throws {
    guard arguments.count == 4, let side = Side(rawValue: arguments[0]),
      let size = Size(rawValue: arguments[1]), let seconds = Double(arguments[3])
    else { throw BenchmarkError.wrongResult("the arguments of a process") }
    let operation = try operation(side, size, Scratch(sharing: arguments[2]))
    try StandardStream.output.write("ready\n")
    _ = try StandardStream.input.read()
    let share = try share(of: operation, seconds: seconds)
    try StandardStream.output.write(Array(try JSONEncoder().encode(share)))
  }

  private static func operation(
    _ side: Side, _ size: Size, _ scratch: Scratch
  ) throws -> () throws -> Void {
    switch side {
    case .ours:
      let slot = try scratch.slot()
      return { try slot.addOne(size) }
    case .floor: return try scratch.floor(size).update
    case .replace: return try scratch.floor(size).replace
    case .database: return try Database(scratch.path).add
    case .idle: return {}
    }
  }

  /// Repeats the operation for the given time.
  private static func share(
    of operation: () throws -> Void, seconds: Double
  ) throws -> Share {
    var share = Share()
    let before = try ProcessFigures.time(of: Processes.current)
    var now = Instant.now
    let end = now + .seconds(seconds)
    while now < end {
      try operation()
      let after = Instant.now
      share.count += 1
      share.longest = max(share.longest, Double((after - now).inNanoseconds))
      now = after
    }
    let time = try ProcessFigures.time(of: Processes.current) - before
    share.processor = time / (seconds * 1e9)
    return share
  }
}

/// An updating process, from the view of its parent.
private struct UpdatingChild {
  private let process: Child
  private let input: Pipes
  private let output: Pipes

  /// A pipe that can be stored in an array.
  private final class Pipes {
    let pipe: WormholeSyscalls.Pipe
    init() throws { pipe = try WormholeSyscalls.Pipe() }
  }

  init(
    _ side: UpdateProcess.Side, _ size: Size, _ scratch: Scratch, _ seconds: Double
  ) throws {
    input = try Pipes()
    output = try Pipes()
    process = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [UpdateProcess.argument, side.rawValue, size.rawValue, scratch.path, "\(seconds)"],
      input: input.pipe.reading.rawValue, output: output.pipe.writing.rawValue)
  }

  func say(_ text: String) throws {
    let bytes = Array(text.utf8)
    try input.pipe.writing.writeFully(bytes)
  }

  func hear(_ text: String) throws {
    guard String(decoding: try bytes(), as: UTF8.self) == text else {
      throw BenchmarkError.wrongResult(Update.name)
    }
  }

  func rest() throws -> Data {
    let said = try bytes()
    guard try process.wait() == .exited(0) else { throw BenchmarkError.wrongResult(Update.name) }
    return Data(said)
  }

  /// Reads the output of one write: a line, or the final figures, which are shorter than a pipe's
  /// buffer.
  private func bytes() throws -> [UInt8] {
    try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      Array(buffer[..<(try output.pipe.reading.read(into: buffer))])
    }
  }
}
