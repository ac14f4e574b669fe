/// A pure parser of the bytes that a server sends, fed in pieces of any size.
///
/// A line has at most 4096 bytes, an INFO at most 64 KiB, and a body at most ``maximumBody`` bytes.
/// So the parser stores at most one body and the bytes fed last. After an error the bytes behind it
/// have no meaning: the caller closes the connection.
struct ProtocolParser {
  enum Input {
    case info([UInt8])
    case ping, pong, ok
    case error(String)
    case message(subscription: Int, RelayMessage)
  }

  /// The size that no server can raise.
  static let largestBody = 64 << 20
  private static let longestLine = 4096
  private static let longestInfo = 64 << 10
  /// Room for the headers that JetStream adds to a message of the maximum size.
  private static let addedHeaders = 64 << 10

  /// The `max_payload` of the server.
  var maximumBody = 1 << 20

  private var buffer: [UInt8] = []
  /// The first byte that was not used yet.
  private var start = 0
  /// The first byte that was not searched for the end of the line.
  private var searched = 0
  private var head: Head?

  /// The line in front of a body.
  private struct Head {
    let subject: String
    let reply: String?
    let subscription: Int
    let headerSize: Int
    let size: Int
  }

  mutating func feed(_ bytes: RawSpan) {
    // Used bytes are removed only when they are the greater part, so that no byte moves often.
    if start > buffer.count / 2 {
      buffer.removeSubrange(..<start)
      searched -= start
      start = 0
    }
    bytes.withUnsafeBytes { buffer.append(contentsOf: $0) }
  }

  /// Returns the next complete input; nil if more bytes are needed.
  mutating func next() throws(RelayFailure) -> Input? {
    if head == nil {
      guard let line = try nextLine() else { return nil }
      if let input = try parse(line) { return input }
    }
    guard let head, buffer.count - start >= head.size + 2 else { return nil }
    let end = start + head.size
    guard buffer[end] == 0x0D, buffer[end + 1] == 0x0A else {
      throw Self.failure("a message is longer than its line states")
    }
    let headerEnd = start + head.headerSize
    let message = RelayMessage(
      subject: head.subject, reply: head.reply,
      headers: head.headerSize == 0 ? (nil, "", []) : HeaderBlock.parse(buffer[start..<headerEnd]),
      payload: Array(buffer[headerEnd..<end]))
    start = end + 2
    searched = start
    self.head = nil
    return .message(subscription: head.subscription, message)
  }

  private static func failure(_ cause: String) -> RelayFailure {
    RelayFailure(.malformed, "the server breaks the protocol: \(cause)")
  }

  /// Takes the bytes of a line from the buffer, without the line's end.
  private mutating func nextLine() throws(RelayFailure) -> ArraySlice<UInt8>? {
    let from = searched
    let end = buffer.withUnsafeBufferPointer { bytes in
      var index = from
      while index < bytes.count, bytes[index] != 0x0A { index += 1 }
      return index
    }
    searched = end
    let length = end - start
    guard length <= Self.longestLine || isInfo && length <= Self.longestInfo else {
      throw Self.failure("a line is longer than \(isInfo ? Self.longestInfo : Self.longestLine)")
    }
    guard end < buffer.count else { return nil }
    var line = buffer[start..<end]
    if line.last == 0x0D { line.removeLast() }
    start = end + 1
    searched = start
    return line
  }

  private var isInfo: Bool {
    let word = buffer[start...].prefix(5)
    return word.count == 5 && word.prefix(4).elementsEqual("INFO".utf8)
      && (word.last == 0x20 || word.last == 0x09)
  }

  /// Reads a line; nil if a body follows.
  private mutating func parse(_ line: ArraySlice<UInt8>) throws(RelayFailure) -> Input? {
    let verb = line.prefix { $0 != 0x20 && $0 != 0x09 }
    let rest = line[verb.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
    switch String(decoding: verb, as: UTF8.self).uppercased() {
    case "MSG": head = try parseHead(rest, hasHeaders: false)
    case "HMSG": head = try parseHead(rest, hasHeaders: true)
    case "PING": return .ping
    case "PONG": return .pong
    case "+OK": return .ok
    case "INFO": return .info(Array(rest))
    case "-ERR":
      let quotes: Set<UInt8> = [0x27, 0x20, 0x09]
      var text = rest.drop { quotes.contains($0) }
      while let last = text.last, quotes.contains(last) { text.removeLast() }
      return .error(String(decoding: text, as: UTF8.self))
    default: throw Self.failure("an unknown line")
    }
    return nil
  }

  /// Reads `subject sid [reply] [header size] size`.
  private func parseHead(
    _ line: ArraySlice<UInt8>, hasHeaders: Bool
  ) throws(RelayFailure) -> Head {
    let words = line.split { $0 == 0x20 || $0 == 0x09 }
    let least = hasHeaders ? 4 : 3
    guard words.count == least || words.count == least + 1,
      let subscription = Digits.int(words[1]), let size = Digits.int(words[words.count - 1]),
      let headerSize = hasHeaders ? Digits.int(words[words.count - 2]) : 0, headerSize <= size
    else { throw Self.failure("a bad line before a message") }
    let limit = min(maximumBody + Self.addedHeaders, Self.largestBody)
    guard size <= limit else {
      throw RelayFailure(
        .tooLarge, "the server sends a message of \(size) bytes; the limit is \(limit)")
    }
    return Head(
      subject: String(decoding: words[0], as: UTF8.self),
      reply: words.count > least ? String(decoding: words[2], as: UTF8.self) : nil,
      subscription: subscription, headerSize: headerSize, size: size)
  }
}
