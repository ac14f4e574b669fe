/// Names and values of headers, in their order.
package typealias RelayHeaders = [(name: String, value: String)]

/// A message that a server has delivered.
package struct RelayMessage {
  package let subject: String
  package let reply: String?
  /// The status line and the fields of the headers.
  ///
  /// Only messages of the server itself have a status.
  package let headers: (status: Int?, description: String, fields: RelayHeaders)
  package let payload: [UInt8]

  package init(
    subject: String, reply: String? = nil,
    headers: (status: Int?, description: String, fields: RelayHeaders) = (nil, "", []),
    payload: [UInt8] = []
  ) {
    self.subject = subject
    self.reply = reply
    self.headers = headers
    self.payload = payload
  }

  /// Returns the first value of a header; upper and lower case are alike in its name.
  package func header(_ name: String) -> String? {
    let wanted = name.lowercased()
    return headers.fields.first { $0.name.lowercased() == wanted }?.value
  }

  /// Whether this is the server's reply that no program listens on the subject.
  var isWithoutResponder: Bool { headers.status == 503 && payload.isEmpty }
}

/// The block of headers in front of a payload.
enum HeaderBlock {
  private static let version = Array("NATS/1.0".utf8)

  /// Reads a block; never fails, because a bad header must not hold up the messages behind it.
  ///
  /// Lines that are no headers are skipped.
  static func parse(
    _ block: ArraySlice<UInt8>
  ) -> (status: Int?, description: String, fields: RelayHeaders) {
    var lines = block.split(separator: 0x0A, omittingEmptySubsequences: false)[...]
    guard let first = lines.popFirst(), first.starts(with: version) else { return (nil, "", []) }
    let words = trim(first.dropFirst(version.count))
    let code = words.prefix { $0 != 0x20 }
    let status = code.count == 3 ? Digits.int(code) : nil
    let description = status == nil ? words : trim(words.dropFirst(code.count))
    var fields: RelayHeaders = []
    for line in lines {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
        continue
      }
      let value = trim(line[(colon + 1)...])
      fields.append(
        (
          String(decoding: line[..<colon], as: UTF8.self),
          String(decoding: value, as: UTF8.self)
        ))
    }
    return (status, String(decoding: description, as: UTF8.self), fields)
  }

  /// Writes a block; refuses names and values that would end their line.
  static func format(_ fields: RelayHeaders) throws(RelayFailure) -> [UInt8] {
    var bytes = version
    bytes += [0x0D, 0x0A]
    for (name, value) in fields {
      guard !name.isEmpty, !name.utf8.contains(where: { $0 <= 0x20 || $0 == 0x3A || $0 >= 0x7F }),
        !value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A })
      else { throw RelayFailure(.malformed, "cannot send the header '\(name)': it has line ends") }
      bytes += Array("\(name): \(value)\r\n".utf8)
    }
    bytes += [0x0D, 0x0A]
    return bytes
  }

  private static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
    while let last = bytes.last, [0x20, 0x09, 0x0D].contains(last) { bytes.removeLast() }
    return bytes
  }
}
