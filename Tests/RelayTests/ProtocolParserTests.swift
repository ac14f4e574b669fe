import TestSupport
import TestTraits
import Testing

@testable import WormholeRelay

/// The parser of the server's bytes, fed in every split.
@Suite(.blocking) struct ProtocolParserTests {
  /// A dialogue with every kind of line.
  private static let dialogue: [UInt8] = Array(
    """
    INFO {"version":"2.10.23"}\r
    +OK\r
    PING\r
    pong\r
    -ERR 'Permissions Violation for Publish to "a.b"'\r
    MSG a.b 7 3\r
    \r\n\r\r
    MSG  a.b\t7  _INBOX.1   0\r
    \r
    HMSG a.b 7 12 14\r
    NATS/1.0\r
    \r
    ok\r
    HMSG a 8 re 42 42\r
    NATS/1.0 503 No  Responders\r
    A:b\r
    x : \r
    \r
    \r
    PING\r

    """.utf8)

  private static func describe(_ input: ProtocolParser.Input) -> String {
    switch input {
    case .info(let json): "info \(text(json))"
    case .ping: "ping"
    case .pong: "pong"
    case .ok: "ok"
    case .error(let reason): "error \(reason)"
    case .message(let id, let message):
      "\(message.subject) \(id) \(message.reply ?? "-") \(message.headers.status ?? 0) "
        + "\(message.headers.description) \(message.headers.fields.map { "\($0)=\($1)" }) "
        + "\(message.payload)"
    }
  }

  /// Feeds pieces, and returns what the parser finds after each of them.
  private static func parse(_ pieces: [ArraySlice<UInt8>]) throws -> [String] {
    var parser = ProtocolParser()
    var found: [String] = []
    for piece in pieces {
      parser.feed(piece.span.bytes)
      while let input = try parser.next() { found.append(describe(input)) }
    }
    return found
  }

  private static let expected = [
    "info {\"version\":\"2.10.23\"}", "ok", "ping", "pong",
    "error Permissions Violation for Publish to \"a.b\"", "a.b 7 - 0  [] [13, 10, 13]",
    "a.b 7 _INBOX.1 0  [] []", "a.b 7 - 0  [] [111, 107]",
    "a 8 re 503 No  Responders [\"A=b\", \"x =\"] []", "ping",
  ]

  @Test func everySplitGivesTheSame() throws {
    let all = Self.dialogue[...]
    #expect(try Self.parse([all]) == Self.expected)
    #expect(try Self.parse(all.indices.map { all[$0...$0] }) == Self.expected)
    for first in all.indices {
      #expect(try Self.parse([all[..<first], all[first...]]) == Self.expected)
      for second in stride(from: first, to: all.count, by: 7) {
        #expect(
          try Self.parse([all[..<first], all[first..<second], all[second...]]) == Self.expected)
      }
    }
  }

  @Test(arguments: [
    "HELLO\r\n", "\r\n", "MSG\r\n", "MSG a 1\r\n", "MSG a 1 -1\r\n", "MSG a x 1\r\n",
    "MSG a 1 +1\r\n", "MSG a 1 1 1 1\r\n", "MSG a 1 999999999999999999999999999999\r\n",
    "MSG a 18446744073709551615 0\r\n\r\n", "MSG a 1 9223372036854775807\r\n",
    "MSG a 1 18446744073709551616\r\n", "HMSG a 1 5 4\r\nabcde\r\n", "HMSG a 1 12\r\n",
    "MSG a 1 1\r\nabc\r\n", "MSG a 1 1\r\na\n\n", "HMSG a 1 1 2 3 4\r\n", "\u{0}\u{0}\n",
  ])
  func brokenLinesAreRefused(_ line: String) {
    #expect(relayFailure { _ = try Self.parse([Array(line.utf8)[...]]) } != nil)
  }

  @Test func linesAndBodiesAreBounded() throws {
    func line(_ start: String, _ count: Int) -> [ArraySlice<UInt8>] {
      [Array(start.utf8)[...], [UInt8](repeating: 0x61, count: count)[...]]
    }
    #expect(try Self.parse(line("-ERR ", 4091)) == [])
    #expect(relayFailure { _ = try Self.parse(line("-ERR ", 4092)) }?.kind == .malformed)
    #expect(try Self.parse(line("INFO ", (64 << 10) - 5)) == [])
    #expect(relayFailure { _ = try Self.parse(line("INFO ", (64 << 10) - 4)) } != nil)
    #expect(relayFailure { _ = try Self.parse(line("INFOS", 4092)) } != nil)
    // JetStream adds headers to a message that has the maximum size.
    let largest = "MSG a 1 \((1 << 20) + (64 << 10))\r\n"
    #expect(relayFailure { _ = try Self.parse([Array(largest.utf8)[...]]) } == nil)
    let tooLarge = "MSG a 1 \((1 << 20) + (64 << 10) + 1)\r\n"
    #expect(
      relayFailure { _ = try Self.parse([Array(tooLarge.utf8)[...]]) }?.kind == .tooLarge)
    // No server can raise the limit beyond 64 MiB.
    var parser = ProtocolParser()
    parser.maximumBody = .max - (64 << 10)
    parser.feed("MSG a 1 \((64 << 20) + 1)\r\n".utf8.span.bytes)
    #expect(relayFailure { _ = try parser.next() }?.kind == .tooLarge)
  }

  @Test func randomBytesNeverTrap() throws {
    var random = SeededRandom(seed: TestRun.seed)
    for _ in 0..<(TestRun.isLong ? 100_000 : 3000) {
      var bytes = Self.dialogue
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = .random(in: .min ... .max, using: &random)
        case 1: bytes.remove(at: place)
        case 2: bytes.insert(.random(in: 0x20...0x39, using: &random), at: place)
        default: bytes[place] = [0x0A, 0x0D, 0x20, 0x39, 0x3A, 0x80].randomElement(using: &random)!
        }
      }
      let split = Int.random(in: bytes.indices, using: &random)
      _ = try? Self.parse([bytes[..<split], bytes[split...]])
    }
  }

  @Test(arguments: [
    "", "\r\n", "NATS/1.0", "NATS/2.0 100\r\n\r\n", "NATS/1.0 1000 x\r\n\r\n", "NATS/1.0 -12\r\n",
    "NATS/1.0\r\n:\r\n::\r\n\r\n", "NATS/1.0\nA\n\n\n",
  ])
  func oddHeadersHaveNoStatus(_ block: String) {
    let headers = HeaderBlock.parse(Array(block.utf8)[...])
    #expect(headers.status == nil)
    #expect(headers.fields.isEmpty)
  }

  @Test func headersAreReadAsTheyWereWritten() throws {
    let block = try HeaderBlock.format([("Nats-Msg-Id", "a:b \u{fc}"), ("E", "")])
    #expect(text(block) == "NATS/1.0\r\nNats-Msg-Id: a:b \u{fc}\r\nE: \r\n\r\n")
    let fields = HeaderBlock.parse(block[...]).fields
    #expect(fields.map(\.name) == ["Nats-Msg-Id", "E"])
    #expect(fields.map(\.value) == ["a:b \u{fc}", ""])
    for (name, value) in [
      ("a\r\nb", ""), ("a", "b\r\nPUB x 0"), ("", "a"), ("a b", ""), ("a:", ""),
    ] {
      #expect(relayFailure { _ = try HeaderBlock.format([(name, value)]) }?.kind == .malformed)
    }
  }

  @Test func positionsAreReadInBothForms() {
    let short = ConsumerPosition("$JS.ACK.S.C.1.20.3.1700000000000000000.5")
    #expect(short?.stream == "S" && short?.consumer == "C")
    #expect(short?.streamSequence == 20 && short?.consumerSequence == 3 && short?.pending == 5)
    #expect(ConsumerPosition("$JS.ACK.hub.hash.S.C.1.20.3.1700000000000000000.5") == short)
    #expect(ConsumerPosition("$JS.ACK.hub.hash.S.C.1.20.3.1700000000000000000.5.token") == short)
    for bad in [
      "", "$JS.ACK", "$JS.ACK.S.C.1.20.3.4", "$JS.ACK.S.C.1.x.3.4.5", "$JS.NAK.S.C.1.20.3.4.5",
      "$JS.ACK.d.S.C.1.20.3.4.5", "$JS.ACK.S.C.1.-2.3.4.5",
      "$JS.ACK.S.C.1.2.3.4.999999999999999999999999999999", ".........",
    ] {
      #expect(ConsumerPosition(bad) == nil)
    }
  }
}
