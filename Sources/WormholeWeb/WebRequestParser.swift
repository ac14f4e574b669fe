/// A pure parser of HTTP/1.1 requests, fed in pieces of any size.
///
/// The parser is strict: two programs that read the same bytes differently are a way past each
/// check. So a line ends in CR and LF, a field is on one line, a length is given once, in digits
/// alone, and a body has no other coding. After an error the bytes behind it have no meaning: the
/// server replies and closes the connection.
package struct WebRequestParser: Sendable {
  private let limits: WebLimits
  private var buffer: [UInt8] = []
  /// The first byte that was not searched for the end of the head.
  private var searched = 0
  private var head: Head?

  private struct Head {
    let method: WebRequest.Method
    let path: String
    let headers: [WebRequest.Header]
    let staysOpen: Bool
    let length: Int
  }

  package init(_ limits: WebLimits = WebLimits()) { self.limits = limits }

  /// Whether a request has begun and is not complete.
  package var isInside: Bool { head != nil || !buffer.isEmpty }

  package mutating func feed(_ bytes: some Sequence<UInt8>) {
    buffer.append(contentsOf: bytes)
  }

  /// Returns the next complete request; nil if more bytes are needed.
  package mutating func next() throws(WebRefusal) -> WebRequest? {
    if head == nil {
      guard let end = try endOfHead() else { return nil }
      head = try parse(buffer[..<end])
      buffer.removeFirst(end + 4)
      searched = 0
    }
    guard let head, buffer.count >= head.length else { return nil }
    let body = Array(buffer[..<head.length])
    buffer.removeFirst(head.length)
    self.head = nil
    return WebRequest(head.method, head.path, head.headers, body, staysOpen: head.staysOpen)
  }

  /// Returns the position of the empty line; checks the bound before the line has arrived.
  private mutating func endOfHead() throws(WebRefusal) -> Int? {
    let pattern: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
    while searched + 4 <= buffer.count, searched <= limits.head {
      if buffer[searched..<searched + 4].elementsEqual(pattern) { return searched }
      searched += 1
    }
    guard searched <= limits.head else {
      throw WebRefusal(431, "the head of the request has more than \(limits.head) bytes")
    }
    return nil
  }

  private func parse(_ bytes: ArraySlice<UInt8>) throws(WebRefusal) -> Head {
    let lines = try lines(of: bytes)
    let words = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
    guard words.count == 3, let version = text(words[2]), let target = text(words[1]),
      target.utf8.first == 0x2F, target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else { throw WebRefusal(400, "the first line is no request") }
    guard ["HTTP/1.1", "HTTP/1.0"].contains(version) else {
      throw WebRefusal(505, "the version is neither HTTP/1.1 nor HTTP/1.0")
    }
    guard let method = text(words[0]).flatMap(WebRequest.Method.init) else {
      throw WebRefusal(405, "the method is neither GET nor POST")
    }
    guard lines.count - 1 <= limits.fields else {
      throw WebRefusal(431, "the request has more than \(limits.fields) header fields")
    }
    var headers: [WebRequest.Header] = []
    for line in lines.dropFirst() { headers.append(try field(line)) }
    let path = target.utf8.prefix { $0 != 0x3F }
    return Head(
      method: method, path: String(Substring(path)), headers: headers,
      staysOpen: version == "HTTP/1.1"
        && !headers.contains { $0.name == "connection" && Self.hasClose($0.value) },
      length: try length(headers, method))
  }

  private func lines(of bytes: ArraySlice<UInt8>) throws(WebRefusal) -> [ArraySlice<UInt8>] {
    var lines: [ArraySlice<UInt8>] = []
    for part in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
      lines.append(part)
    }
    for index in lines.indices {
      if index < lines.count - 1 {
        guard lines[index].popLast() == 0x0D else {
          throw WebRefusal(400, "a line does not end in CR and LF")
        }
      }
      guard lines[index].allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw WebRefusal(400, "the head contains a control character")
      }
    }
    return lines
  }

  private func field(_ line: ArraySlice<UInt8>) throws(WebRefusal) -> WebRequest.Header {
    guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex,
      line[..<colon].allSatisfy(Self.isToken), let name = text(line[..<colon])
    else { throw WebRefusal(400, "a header field has no name") }
    var value = line[(colon + 1)...]
    while value.first == 0x20 || value.first == 0x09 { value.removeFirst() }
    while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
    return WebRequest.Header(name.lowercased(), String(decoding: value, as: UTF8.self))
  }

  private func length(
    _ headers: [WebRequest.Header], _ method: WebRequest.Method
  ) throws(WebRefusal) -> Int {
    guard !headers.contains(where: { $0.name == "transfer-encoding" }) else {
      throw WebRefusal(501, "the body has a coding; send its length")
    }
    let lengths = headers.filter { $0.name == "content-length" }
    guard let field = lengths.first else {
      if method == .post { throw WebRefusal(411, "the length of the body is missing") }
      return 0
    }
    guard lengths.count == 1, (1...9).contains(field.value.utf8.count),
      field.value.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(field.value)
    else { throw WebRefusal(400, "the length of the body is no number") }
    guard count <= limits.body else {
      throw WebRefusal(413, "the body has more than \(limits.body) bytes")
    }
    return count
  }

  private func text(_ bytes: ArraySlice<UInt8>) -> String? {
    String(validating: bytes, as: UTF8.self)
  }

  /// Whether a list of options of the connection contains its end.
  private static func hasClose(_ options: String) -> Bool {
    options.lowercased().split { ", \t".contains($0) }.contains("close")
  }

  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
