import Foundation
import Wormhole
import WormholeSyscalls

/// Sending a file, against `cp`: afterwards the receiver has the complete file under its name.
///
/// The copies are removed again on both sides. The small size has 64 MB, the large size 1 GB.
struct SendFile: Benchmark {
  static let name = "file"
  static let summary = "sending a file, against cp"
  static let isPaired = true
  static func requiredRatio(_ size: Size) -> Double? { 0.9 }

  private let exchange: FileExchange

  init(size: Size) throws { exchange = try FileExchange(size, isReceived: false) }
  func ours() throws { _ = try exchange.send().cancel() }
  func baseline() throws { try exchange.copy() }
}

/// The same workload until the receiver has read the file through, compared it with the original,
/// and acknowledged it; `cp` does neither.
struct DeliverFile: Benchmark {
  static let name = "file-delivery"
  static let summary = "sending a file until it is compared and acknowledged, against cp"
  static let isPaired = true

  private let exchange: FileExchange

  init(size: Size) throws { exchange = try FileExchange(size, isReceived: true) }
  func ours() throws { try exchange.deliver() }
  func baseline() throws { try exchange.copy() }
}

private final class FileExchange {
  private let scratch: Scratch
  private let sender: Member
  private let receiver: Member
  private let receiving: Subscription?
  private let outcomes: Subscription
  private let heard: Monitor<Int>
  private let size: Int
  private var source: String { scratch.path + "/source" }

  init(_ size: Size, isReceived: Bool) throws {
    self.size = size == .small ? 64 << 20 : 1 << 30
    scratch = try Scratch()
    let heard = Monitor(0)
    self.heard = heard
    sender = try SharedContainer(directory: scratch.path + "/holes").join(as: "phone")
    receiver = try SharedContainer(directory: scratch.path + "/holes").join(as: "watch")
    let bytes = self.size
    receiving =
      isReceived
      ? try receiver.receive { message in
        guard message.file?.size == bytes else { throw BenchmarkError.wrongResult("a file") }
      } : nil
    outcomes = try sender.watchOutcomes { _ in heard.signal { $0 += 1 } }
    try write()
    try copy()
  }

  private func write() throws {
    guard FileManager.default.createFile(atPath: source, contents: nil),
      let file = FileHandle(forWritingAtPath: source)
    else { throw BenchmarkError.nothingMeasured("file") }
    let part = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 167) })
    for _ in 0..<(size >> 20) { try file.write(contentsOf: part) }
    try file.close()
  }

  func deliver() throws {
    try send()
    let isHeard = heard.wait(until: .now + .seconds(120)) { heard -> Bool? in
      guard heard > 0 else { return nil }
      heard = 0
      return true
    }
    guard isHeard == true else { throw BenchmarkError.nothingMeasured("file") }
  }

  @discardableResult
  func send() throws -> Sent {
    var options = SendOptions()
    options.durability = .process
    return try sender.peer("watch").send(file: source, options)
  }

  func copy() throws {
    let copy = scratch.path + "/copy"
    guard try Child.spawn("cp", [source, copy]).wait() == .exited(0) else {
      throw BenchmarkError.floor("cp")
    }
    try FileManager.default.removeItem(atPath: copy)
  }
}
