import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Standard input, line by line.
struct LineReader {
  private var rest: [UInt8] = []
  private var hasEnded = false

  /// Returns the lines that have arrived, without their line feeds; waits for at least one.
  ///
  /// - Returns: nil at the end.
  mutating func next(limit: Int) throws -> [[UInt8]]? {
    while !hasEnded {
      let bytes = try naming("read", "standard input", StandardStream.input.read())
      hasEnded = bytes.isEmpty
      let lines = take(bytes)
      guard rest.count <= limit else {
        throw WormholeError(
          .tooLarge, "read", "standard input", because: "a line has more than \(limit) bytes")
      }
      if !lines.isEmpty { return lines }
    }
    return nil
  }

  private mutating func take(_ bytes: [UInt8]) -> [[UInt8]] {
    guard !bytes.isEmpty else {
      defer { rest = [] }
      return rest.isEmpty ? [] : [rest]
    }
    guard let last = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
      rest += bytes
      return []
    }
    let whole = rest + bytes[..<last]
    rest = Array(bytes[(last + 1)...])
    return whole.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map(Array.init)
  }
}

/// The number of lines sent, as shown on a terminal.
final class LineCount: Sendable {
  private struct State {
    var sent = 0
    var isSending = false
    /// Whether a signal is ending the command.
    var isInterrupted = false
  }

  private let state = Monitor(State())
  private let output: Output
  private let progress: Progress

  init(_ output: Output) {
    self.output = output
    progress = Progress(output)
  }

  var sent: Int { state.withLock { $0.sent } }

  /// Sends a number of lines, and counts the lines; throws after an interruption, whose report
  /// does not count the lines.
  func send(_ count: Int, _ body: () throws -> Void) throws {
    let isInterrupted = state.withLock { state in
      state.isSending = !state.isInterrupted
      return state.isInterrupted
    }
    guard !isInterrupted else { throw WormholeError(Errno.interrupted, "send", "lines") }
    let result = Result { try body() }
    let sent: Int? = state.signal { state in
      state.isSending = false
      guard case .success = result else { return nil }
      state.sent += count
      return state.sent
    }
    if let sent { progress.show("\(sent) lines sent") }
    try result.get()
  }

  /// Handles a signal: lines in progress are still sent, if that takes no longer than a second, and
  /// no further lines.
  func interrupt() {
    state.withLock { $0.isInterrupted = true }
    let _: Void? = state.wait(until: .now + .seconds(1)) { $0.isSending ? nil : () }
    progress.clear()
    output.tell("interrupted; \(words)")
  }

  /// Reports the number of lines at the end.
  func finish() { progress.finish(words) }

  /// Reports the number of lines after a failure.
  func fail() {
    progress.clear()
    output.tell(words)
  }

  private var words: String {
    let sent = sent
    return sent == 1 ? "1 line was sent" : "\(sent) lines were sent"
  }
}

extension Invocation {
  /// Sends lines as they arrive.
  func sendLines(to name: String, _ options: SendOptions) throws -> Int32 {
    let count = LineCount(output)
    try Interruption.prepare { count.interrupt() }
    var options = options
    // If standard input is faster than the receiver, the command waits for the receiver.
    options.whenFull = .wait(.seconds(1_000_000_000))
    let peer = addressee(try open(create: true).peer(name, from: value(.from)))
    let limit = Options().maximumValueBytes
    var reader = LineReader()
    do {
      while let lines = try reader.next(limit: limit) {
        try send(lines, to: peer, options, count)
      }
    } catch {
      // The report of an interruption is the last one.
      Interruption.settle()
      count.fail()
      throw error
    }
    count.finish()
    return 0
  }

  /// Sends the lines up to the first invalid line.
  private func send(
    _ lines: [[UInt8]], to peer: Peer, _ options: SendOptions, _ count: LineCount
  ) throws {
    let first = count.sent
    let type = value(.type).flatMap(ValueType.init)
    var values: [PropertyListValue] = []
    var failure: (any Error)?
    for (index, line) in lines.enumerated() {
      do {
        let name = "line \(first + index + 1)"
        values.append(try type?.value(of: line, for: name) ?? ValueType.value(ofAny: line))
      } catch {
        failure = error
        break
      }
    }
    var rest = values[...]
    while let next = rest.first {
      // All messages of a file have the same kind.
      let kind = kind(of: next)
      let run = rest.prefix { self.kind(of: $0) == kind }
      rest = rest.dropFirst(run.count)
      var options = options
      options.kind = kind
      var sent: [Sent] = []
      try count.send(run.count) { sent = try peer.send(contentsOf: Array(run), options) }
      if output.isJSON { for one in sent { try output.ofDone.write(one, from: value(.from)) } }
    }
    if let failure { throw failure }
  }
}
