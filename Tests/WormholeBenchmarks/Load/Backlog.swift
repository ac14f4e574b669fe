import Foundation
import Wormhole
import WormholeSyscalls

/// Messages that were sent while no receiver ran, until a process has received all of them.
///
/// The baseline is a backlog of 1000 messages. A receiver whose work or memory for a message grew
/// with the backlog would show here: the details of the large size have a step for each power of
/// ten.
struct Backlog: Benchmark {
  static let isGated = false
  static let name = "backlog"
  static let summary = "a message of a long backlog, against a message of a backlog of 1000"

  private let count: Int
  /// The lengths of the backlogs in the details.
  private let steps: [Int]

  init(size: Size) throws {
    count = size == .small ? 2000 : 1_000_000
    steps = size == .small ? [1000, count] : [1000, 10_000, 100_000, count]
  }

  func ours() throws { _ = try drain(count) }
  func baseline() throws { _ = try drain(1000) }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    let count = isOurs ? count : 1000
    return [try drain(count).seconds * 1e9 / Double(count)]
  }

  func details() throws -> [Detail] {
    try steps.flatMap { count in
      let drained = try drain(count)
      return [
        Detail("\(count) messages: received a second", Double(count) / drained.seconds),
        Detail("\(count) messages: peak memory of the receiver, MB", drained.megabytes),
      ]
    }
  }

  private func drain(_ count: Int) throws -> DrainingProcess.Report {
    let scratch = try Scratch()
    let path = scratch.path + "/holes"
    let peer = try SharedContainer(directory: path).join(as: "phone").peer("watch")
    var options = SendOptions()
    options.durability = .process
    let part = Array(repeating: Data(repeating: 7, count: 100), count: 1000)
    for _ in 0..<(count / part.count) { try peer.send(contentsOf: part, options) }
    return try DrainingProcess.drain(path, count)
  }
}

/// The receiving process: this program, started again with a hidden argument.
enum DrainingProcess {
  static let argument = "--draining-process"

  struct Report: Codable {
    var seconds: Double
    var megabytes: Double
  }

  static func drain(_ path: String, _ count: Int) throws -> Report {
    let output = try WormholeSyscalls.Pipe()
    let child = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0], [argument, path, "\(count)"],
      output: output.writing.rawValue)
    guard try child.wait() == .exited(0) else { throw BenchmarkError.wrongResult(Backlog.name) }
    let bytes = try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      Array(buffer[..<(try output.reading.read(into: buffer))])
    }
    return try JSONDecoder().decode(Report.self, from: Data(bytes))
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2, let count = Int(arguments[1]) else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    let begin = ContinuousClock.now
    let member = try SharedContainer(directory: arguments[0]).join(as: "watch")
    let received = Monitor(0)
    let receiving = try member.receive { message in
      guard try message.value(as: Data.self).count == 100 else { return }
      // Only the last message wakes the waiting thread.
      let isLast = received.withLock { received in
        received += 1
        return received == count
      }
      if isLast { received.broadcast() }
    }
    guard received.wait(until: .now + .seconds(300), { $0 == count ? true : nil }) == true else {
      throw BenchmarkError.nothingMeasured(Backlog.name)
    }
    let report = Report(
      seconds: (ContinuousClock.now - begin).nanoseconds / 1e9,
      megabytes: Double(try ProcessFigures.peakKilobytes()) / 1000)
    receiving.stop()
    try StandardStream.output.write(Array(try JSONEncoder().encode(report)))
  }
}
