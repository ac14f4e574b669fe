import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// Guaranteed messages from one process to another, each in its own file, until the last message is
/// acknowledged.
///
/// The small size uses `.process`, the large size `.power`.
struct SendOne: Benchmark {
  static let name = "send"
  static let summary = "messages of 100 bytes, one by one, against the same calls in C"
  static let isPaired = true
  /// The lower bound for files on any file system; on a disk the ratio is higher.
  ///
  /// Both sides wait for each other's changes of the inbox, each processor in its own way: the
  /// ratio is 0.78 on some machines, between 0.49 and 0.56 on others, and 0.43 to 0.46 on the
  /// slowest one known. The required ratio is to fail for a slower library, not for a slower
  /// machine: 0.38 is a seventh below 0.45.
  static func requiredRatio(_ size: Size) -> Double? { size == .small ? 0.38 : nil }

  private let exchange: MailExchange

  init(size: Size) throws { exchange = try MailExchange(size, batch: 1) }
  func ours() throws { try exchange.ours() }
  func baseline() throws { try exchange.baseline() }
  func details() throws -> [Detail] { try exchange.details() }
}

/// The same workload with 64 messages in a file.
struct SendBatch: Benchmark {
  static let name = "send-batch"
  static let summary = "messages of 100 bytes, 64 in a file, against the same calls in C"
  static let isPaired = true
  /// The library records the progress of a batch with one call for each message, while the baseline
  /// maps the file: a mapped file ends the process as soon as another process truncates the file.
  static func requiredRatio(_ size: Size) -> Double? { size == .small ? 0.15 : nil }

  private let exchange: MailExchange

  init(size: Size) throws { exchange = try MailExchange(size, batch: 64) }
  func ours() throws { try exchange.ours() }
  func baseline() throws { try exchange.baseline() }
  func details() throws -> [Detail] { try exchange.details() }
}

/// Both ways of sending to another process, which acknowledges the last message.
private final class MailExchange {
  private let scratch: Scratch
  private let sender: Member
  private let peer: Peer
  private let watching: Subscription
  private let heard: Monitor<Set<String>>
  private var others: [Child] = []
  private var floor = floor_mailbox()
  /// The content of each file, and the number of files of a round.
  private let messages: [Data]
  private let files: Int
  private let isDurable: Bool

  init(_ size: Size, batch: Int) throws {
    scratch = try Scratch()
    isDurable = size == .large
    // With many files the end of a round is negligible, although it costs a wake-up on each side.
    files = batch == 1 || !isDurable ? 500 : 100
    messages = Array(repeating: Data(repeating: 7, count: 100), count: batch)
    let container = try SharedContainer(directory: scratch.path + "/holes")
    sender = try container.join(as: "phone")
    peer = sender.peer("watch")
    let heard = Monitor<Set<String>>([])
    self.heard = heard
    watching = try sender.watchOutcomes { outcome in heard.signal { _ = $0.insert(outcome.id) } }
    guard floor_mailbox_open(&floor, scratch.path + "/floor", 1) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
    for side in ["ours", "floor"] { others.append(try MailProcess.start(side, scratch.path)) }
    for _ in 0..<2 {
      try ours()
      try baseline()
    }
  }

  deinit {
    for other in others {
      try? other.send(.kill)
      _ = try? other.wait()
    }
    floor_mailbox_close(&floor)
  }

  func ours() throws {
    var options = SendOptions()
    options.durability = isDurable ? .power : .process
    options.wantsOutcome = false
    for _ in 1..<files {
      if messages.count == 1 {
        try peer.send(messages[0], options)
      } else {
        try peer.send(contentsOf: messages, options)
      }
    }
    options.wantsOutcome = true
    let sent = try peer.send(contentsOf: messages, options)
    let isHeard = heard.wait(until: .now + .seconds(60)) { heard in
      sent.allSatisfy { heard.remove($0.id) != nil } ? true : nil
    }
    guard isHeard == true else { throw BenchmarkError.nothingMeasured("send") }
  }

  func baseline() throws {
    let size = messages[0].count
    var parts = messages.map { message in
      let part = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 1)
      message.copyBytes(to: UnsafeMutableRawBufferPointer(start: part, count: size))
      return UnsafeRawPointer?(part)
    }
    defer { for part in parts { part?.deallocate() } }
    for file in 1...files {
      let (sync, isLast): (CInt, CInt) = (isDurable ? 1 : 0, file == files ? 1 : 0)
      guard floor_post(&floor, &parts, parts.count, size, sync, isLast) == 0 else {
        throw BenchmarkError.floor(String(cString: strerror(errno)))
      }
    }
    guard floor_await_receipt(&floor) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
  }

  func details() throws -> [Detail] {
    let there = try Measurement.measure(for: .milliseconds(400)) { try ours() }
    let bare = try Measurement.measure(for: .milliseconds(400)) { try baseline() }
    let count = Double(messages.count * files)
    return [
      Detail("messages a second", count / there.median * 1e9),
      Detail("with the bare calls", count / bare.median * 1e9),
    ]
  }
}

/// The receiving process: this program, started again with a hidden argument.
enum MailProcess {
  static let argument = "--receiving-process"

  static func start(_ side: String, _ path: String) throws -> Child {
    try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0], [argument, side, path])
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2 else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    if arguments[0] == "floor" {
      var floor = floor_mailbox()
      guard floor_mailbox_open(&floor, arguments[1] + "/floor", 0) == 0,
        floor_receive(&floor, 0) == 0
      else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
      return
    }
    let container = try SharedContainer(directory: arguments[1] + "/holes")
    let member = try container.join(as: "watch")
    let receiving = try member.receive { message in
      guard try message.value(as: Data.self).count == 100 else {
        throw BenchmarkError.wrongResult("a message")
      }
    }
    _ = Monitor(()).wait(until: .now + .seconds(300)) { _ in Bool?.none }
    receiving.stop()
  }
}
