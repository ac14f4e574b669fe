import Foundation
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A process that updates as often as possible: this program, started again with a hidden argument.
///
/// The process reports when it is ready, starts on command, and finally reports the number of its
/// updates and its longest wait for an update.
enum UpdateProcess {
  /// The implementation that updates.
  enum Side: String {
    case ours, floor, replace, database
    /// The sides of the workload `update`.
    static let usual: [Side] = [.ours, .floor, .replace]
  }

  static let argument = "--updating-process"

  /// The report of a process.
  private struct Share: Codable {
    var count: Int
    var longest: Double
  }

  /// Returns the rate of several processes together, the share of the least served process relative
  /// to the most served, and the longest wait of any process for its turn.
  static func measure(_ side: Side, _ size: Size, processes: Int) throws -> [Detail] {
    let scratch = try Scratch()
    let start = try number(side, size, scratch)
    var children: [UpdatingChild] = []
    for _ in 0..<processes { children.append(try UpdatingChild(side, size, scratch)) }
    for child in children { try child.hear("ready\n") }
    for child in children { try child.say("go\n") }
    let shares = try children.map { try JSONDecoder().decode(Share.self, from: $0.rest()) }
    let counts = shares.map(\.count)
    let total = counts.reduce(0, +)
    try Sample.check(try number(side, size, scratch) == start + total, Update.name)
    let label = "\(side.rawValue), \(processes) process\(processes == 1 ? "" : "es")"
    let rate = Detail(label + ": updates a second", Double(total) / seconds(size))
    guard processes > 1 else { return [rate] }
    return [
      rate,
      Detail(label + ": least to most served", Double(counts.min()!) / Double(counts.max()!)),
      Detail(label + ": longest wait, ms", shares.map(\.longest).max()! / 1e6),
    ]
  }

  private static func seconds(_ size: Size) -> Double { size == .small ? 0.1 : 2 }

  private static func number(_ side: Side, _ size: Size, _ scratch: Scratch) throws -> Int {
    if side == .database { return try Database(scratch.path).number() }
    if side != .ours { return try scratch.floor(size).number() }
    let slot = try scratch.slot()
    if case .nothing = try slot.read() { try slot.addOne(size) }
    return try slot.number()
  }

  /// Runs as the process that was started with the hidden argument.
  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let side = Side(rawValue: arguments[0]),
      let size = Size(rawValue: arguments[1])
    else { throw BenchmarkError.wrongResult("the arguments of a process") }
    let scratch = Scratch(sharing: arguments[2])
    let operation: () throws -> Void
    switch side {
    case .ours:
      let slot = try scratch.slot()
      operation = { try slot.addOne(size) }
    case .floor: operation = try scratch.floor(size).update
    case .replace: operation = try scratch.floor(size).replace
    case .database: operation = try Database(scratch.path).add
    }
    try StandardStream.output.write("ready\n")
    _ = try StandardStream.input.read()
    var share = Share(count: 0, longest: 0)
    var now = Instant.now
    let end = now + .seconds(seconds(size))
    while now < end {
      try operation()
      let after = Instant.now
      share.count += 1
      share.longest = max(share.longest, Double((after - now).inNanoseconds))
      now = after
    }
    try StandardStream.output.write(Array(try JSONEncoder().encode(share)))
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

  init(_ side: UpdateProcess.Side, _ size: Size, _ scratch: Scratch) throws {
    input = try Pipes()
    output = try Pipes()
    process = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [UpdateProcess.argument, side.rawValue, size.rawValue, scratch.path],
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
