import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// Messages of sixteen sending processes to a receiver, until the receiver has handled the last.
///
/// In a round, no sender waits for the receiver. The details also have the rates of one sender.
struct Senders: Benchmark {
  static let isGated = false
  static let name = "senders"
  static let summary = "messages of sixteen processes to one receiver, against the same calls in C"

  private let size: Size
  private let many: SenderGroups

  init(size: Size) throws {
    self.size = size
    many = try SenderGroups(16, size)
  }

  func ours() throws { try many.library.exchange() }
  func baseline() throws { try many.bare.exchange() }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    try (isOurs ? many.library : many.bare).samples()
  }

  func details() throws -> [Detail] {
    try SenderGroups(1, size).details() + many.details()
  }
}

/// The same number of senders for each side.
private struct SenderGroups {
  let library: SenderGroup
  let bare: SenderGroup
  private let label: String

  init(_ senders: Int, _ size: Size) throws {
    library = try SenderGroup("ours", senders, size)
    bare = try SenderGroup("floor", senders, size)
    label = "\(senders) sender\(senders == 1 ? "" : "s")"
  }

  func details() throws -> [Detail] {
    let there = Measurement(samples: try library.samples()).median
    let calls = Measurement(samples: try bare.samples()).median
    return [
      Detail(label + ": messages a second", 1e9 / there),
      Detail(label + ": with the bare calls", 1e9 / calls),
      Detail(label + ": ratio", calls / there),
    ]
  }
}

/// A receiving process and its senders, in a directory of their own.
private final class SenderGroup {
  private let scratch: Scratch
  /// Each process writes a byte when ready, and the receiver a further byte after each round.
  private let replies: WormholeSyscalls.Pipe
  private let receiver: RoundProcess
  private var senders: [RoundProcess] = []
  /// The number of messages of a round, from all senders together.
  private let messages: Int
  private let rounds: Int

  init(_ side: String, _ count: Int, _ size: Size) throws {
    messages = size == .small ? 400 : 16_000
    rounds = size == .small ? 3 : 5
    scratch = try Scratch()
    replies = try WormholeSyscalls.Pipe()
    let output = replies.writing.rawValue
    receiver = try RoundProcess(
      [CountingProcess.argument, side, scratch.path, "\(messages)"], output: output)
    // The receiver has made the directories when the senders start.
    try hear(1)
    for number in 1...count {
      senders.append(
        try RoundProcess(
          [SendingProcess.argument, side, scratch.path, "\(number)", "\(messages / count)"],
          output: output))
    }
    try hear(count)
    try exchange()
  }

  /// The processes end before their directory is removed.
  deinit { for process in senders + [receiver] { process.end() } }

  /// Lets all senders send their part, and waits until the receiver has handled every message.
  func exchange() throws {
    for sender in senders { try sender.begin() }
    try hear(1)
  }

  /// Returns the nanoseconds of a message, as a figure for each round.
  func samples() throws -> [Double] {
    try (0..<rounds).map { _ in
      try ContinuousClock().measure { try exchange() }.nanoseconds / Double(messages)
    }
  }

  /// Reads the given number of bytes; throws after a minute, if a process has ended.
  private func hear(_ count: Int) throws {
    let deadline = Instant.now + .seconds(60)
    var left = count
    try withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
      while left > 0 {
        var awaited = [WaitEntry(replies.reading.rawValue)]
        try WaitEntry.wait(for: &awaited, until: deadline)
        if awaited[0].isReadable {
          let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(left, buffer.count)])
          left -= try replies.reading.read(into: part)
        } else if Instant.now >= deadline {
          throw BenchmarkError.nothingMeasured(Senders.name)
        }
      }
    }
  }
}

/// A process of a group, from the view of its parent; a byte of the parent starts a round.
private final class RoundProcess {
  private let child: Child
  private let input: WormholeSyscalls.Pipe

  init(_ arguments: [String], output: CInt) throws {
    input = try WormholeSyscalls.Pipe()
    child = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0], arguments,
      input: input.reading.rawValue, output: output)
  }

  func end() {
    try? child.send(.kill)
    _ = try? child.wait()
  }

  func begin() throws { try input.writing.writeFully([1]) }
}

/// A sender: this program, started again with a hidden argument.
enum SendingProcess {
  static let argument = "--sending-process"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 4, let number = Int(arguments[2]), let count = Int(arguments[3])
    else { throw BenchmarkError.wrongResult("the arguments of a process") }
    let path = arguments[1]
    if arguments[0] == "floor" { return try sendBarely(path + "/floor", number, count) }
    let peer = try SharedContainer(directory: path + "/holes").join(as: "phone \(number)")
      .peer("watch")
    let message = Data(repeating: 7, count: 100)
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = false
    try sendRounds(of: count) { _ = try peer.send(message, options) }
  }

  private static func sendBarely(_ path: String, _ number: Int, _ count: Int) throws {
    var floor = floor_mailbox()
    floor.sender = UInt(number)
    guard floor_mailbox_open(&floor, path, -1) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
    let message = [UInt8](repeating: 7, count: 100)
    try message.withUnsafeBytes { message in
      var parts = [message.baseAddress]
      try sendRounds(of: count) {
        guard floor_post(&floor, &parts, 1, message.count, 0, 0) == 0 else {
          throw BenchmarkError.floor(String(cString: strerror(errno)))
        }
      }
    }
  }

  /// Sends a round for each byte of the parent, until the parent has ended.
  private static func sendRounds(of count: Int, _ send: () throws -> Void) throws {
    try StandardStream.output.write([1])
    while try !StandardStream.input.read().isEmpty {
      for _ in 0..<count { try send() }
    }
  }
}

/// The receiver of all senders: this program, started again with a hidden argument.
///
/// A message counts when the handler has received the message.
enum CountingProcess {
  static let argument = "--counting-process"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let count = Int(arguments[2]) else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    if arguments[0] == "floor" { return try countBarely(arguments[1] + "/floor", count) }
    let member = try SharedContainer(directory: arguments[1] + "/holes").join(as: "watch")
    let handled = Monitor(0)
    let receiving = try member.receive { message in
      guard try message.value(as: Data.self).count == 100 else {
        throw BenchmarkError.wrongResult("a message")
      }
      let isLast = handled.withLock { handled in
        handled += 1
        return handled % count == 0
      }
      if isLast { try StandardStream.output.write([1]) }
    }
    try StandardStream.output.write([1])
    // The parent sends nothing: the input ends with the parent.
    _ = try StandardStream.input.read()
    receiving.stop()
  }

  private static func countBarely(_ path: String, _ count: Int) throws {
    var floor = floor_mailbox()
    guard floor_mailbox_open(&floor, path, 0) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
    try StandardStream.output.write([1])
    while floor_receive(&floor, count) == 0 { try StandardStream.output.write([1]) }
    throw BenchmarkError.floor(String(cString: strerror(errno)))
  }
}
