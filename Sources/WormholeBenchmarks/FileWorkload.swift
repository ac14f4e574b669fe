import Foundation
import Syscalls
import Wormhole

/// A file from one member to another, until its message is acknowledged, against `cp`.
///
/// What is copied is removed again on both sides. 64 MB in the small size, 1 GB in the large one.
struct SendFile: Benchmark {
  static let name = "file"
  static let summary = "a file, sent, compared and acknowledged, against cp"
  static let isPaired = true
  static func requiredRatio(_ size: Size) -> Double? { 0.9 }

  private let exchange: FileExchange

  init(size: Size) throws { exchange = try FileExchange(size == .small ? 64 << 20 : 1 << 30) }
  func ours() throws { try exchange.ours() }
  func baseline() throws { try exchange.baseline() }
  func details() throws -> [Detail] { try exchange.details() }
}

private final class FileExchange {
  private let scratch: Scratch
  private let sender: Wormhole.Member
  private let receiver: Wormhole.Member
  private let receiving: Wormhole.Receiving
  private let outcomes: Wormhole.OutcomeWatching
  private let heard: Monitor<Int>
  private let size: Int
  private var source: String { scratch.path + "/source" }

  init(_ size: Int) throws {
    self.size = size
    scratch = try Scratch()
    let heard = Monitor(0)
    self.heard = heard
    sender = try Wormhole(directory: scratch.path + "/holes").join(as: "phone")
    receiver = try Wormhole(directory: scratch.path + "/holes").join(as: "watch")
    receiving = try receiver.receive { [size] message in
      guard message.file?.size == size else { throw BenchmarkError.wrongResult("a file") }
    }
    outcomes = try sender.watchOutcomes { _ in heard.signal { $0 += 1 } }
    try write()
    try ours()
    try baseline()
  }

  private func write() throws {
    guard FileManager.default.createFile(atPath: source, contents: nil),
      let file = FileHandle(forWritingAtPath: source)
    else { throw BenchmarkError.nothingMeasured("file") }
    let part = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 167) })
    for _ in 0..<(size >> 20) { try file.write(contentsOf: part) }
    try file.close()
  }

  func ours() throws {
    try send()
    let isHeard = heard.wait(until: .now + .seconds(120)) { heard -> Bool? in
      guard heard > 0 else { return nil }
      heard = 0
      return true
    }
    guard isHeard == true else { throw BenchmarkError.nothingMeasured("file") }
  }

  private func send() throws {
    var options = Wormhole.SendOptions()
    options.durability = .process
    try sender.peer("watch").send(file: source, options)
  }

  func baseline() throws {
    let copy = scratch.path + "/copy"
    guard try Child.spawn("cp", [source, copy]).wait() == .exited(0) else {
      throw BenchmarkError.floor("cp")
    }
    try FileManager.default.removeItem(atPath: copy)
  }

  func details() throws -> [Detail] {
    let there = try Measurement.measure(for: .milliseconds(400)) { try ours() }
    let copied = try Measurement.measure(for: .milliseconds(400)) { try baseline() }
    let clock = ContinuousClock()
    let sent = try clock.measure { try send() }
    return [
      Detail("megabytes a second", Double(size) / there.median * 1e3),
      Detail("until send returns", Double(size) / sent.nanoseconds * 1e3),
      Detail("with cp", Double(size) / copied.median * 1e3),
    ]
  }
}
