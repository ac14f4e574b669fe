import Foundation
import Wormhole
import WormholeSyscalls

/// A process that watches channels, is a member and receives, while nothing happens.
///
/// The figure is its processor time in a second. The baseline sleeps a second at a time.
struct Idle: Benchmark {
  static let isGated = false
  static let name = "idle"
  static let summary =
    "the processor time of an idle process, against one that sleeps by the second"

  private let seconds: Double
  private let scratch: Scratch
  private let idle: IdleProcess
  private let sleeping: IdleProcess

  init(size: Size) throws {
    seconds = size == .small ? 0.5 : 10
    scratch = try Scratch()
    idle = try IdleProcess("ours", scratch.path)
    sleeping = try IdleProcess("floor", scratch.path)
  }

  func ours() throws { _ = try samples(ours: true) }
  func baseline() throws { _ = try samples(ours: false) }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    let process = (isOurs ? idle : sleeping).number
    let begin = try ProcessFigures.time(of: process)
    Foundation.Thread.sleep(forTimeInterval: seconds)
    // A nanosecond stands for a process that did not run at all.
    return [max(1, try ProcessFigures.time(of: process) - begin) / seconds]
  }

  func details() throws -> [Detail] {
    let begin = try ProcessFigures.wakes(of: idle.number)
    Foundation.Thread.sleep(forTimeInterval: seconds)
    let wakes = try ProcessFigures.wakes(of: idle.number) - begin
    return [
      Detail("wake-ups a second", Double(wakes) / seconds),
      Detail("memory at rest, MB", Double(try ProcessFigures.kilobytes(of: idle.number)) / 1000),
    ]
  }
}

/// The idle process: this program, started again with a hidden argument.
final class IdleProcess {
  static let argument = "--idle-process"
  private let child: Child
  var number: Int32 { child.process }

  init(_ side: String, _ path: String) throws {
    let output = try WormholeSyscalls.Pipe()
    child = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0], [Self.argument, side, path],
      output: output.writing.rawValue)
    // It writes a byte when it is idle.
    try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { buffer in
      guard try output.reading.read(into: buffer) == 1 else {
        throw BenchmarkError.nothingMeasured(Idle.name)
      }
    }
    // Threads that have nothing more to do end after a second.
    Foundation.Thread.sleep(forTimeInterval: 1.5)
  }

  deinit {
    try? child.send(.kill)
    _ = try? child.wait()
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2 else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    guard arguments[0] == "ours" else {
      try StandardStream.output.write([1])
      while true { Foundation.Thread.sleep(forTimeInterval: 1) }
    }
    let container = try SharedContainer(directory: arguments[1] + "/holes")
    let member = try container.join(as: "watch")
    let receiving = try member.receive { _ in }
    let watching = try (0..<100).map { number in
      try container.channel("channel \(number)", of: Int.self).watch { _ in }
    }
    try StandardStream.output.write([1])
    _ = Monitor(()).wait(until: .now + .seconds(300)) { _ in Bool?.none }
    for one in watching { one.stop() }
    receiving.stop()
  }
}
