/// A published message, as a stream stores it.
package struct HubMessage: Sendable {
  package let subject: String
  package let reply: String?
  /// The lines of the headers, without the first line.
  package let headers: String
  package let payload: [UInt8]
  /// The ID by which a stream recognizes a repetition.
  package let id: String?
  /// When the stream stored the message, in nanoseconds since 1970; constant by default, because a
  /// seed has to give the same bytes each time.
  package var storedAt: Int64 = 17

  package init(
    _ subject: String, _ payload: [UInt8], headers: String = "", reply: String? = nil
  ) {
    self.subject = subject
    self.payload = payload
    self.headers = headers
    self.reply = reply
    id = Self.header("Nats-Msg-Id", in: headers)
  }

  /// The parts of the subject of a request to JetStream, behind the prefix.
  package var apiParts: [String] { subject.split(separator: ".").dropFirst(3).map(String.init) }

  package func header(_ name: String) -> String? { Self.header(name, in: headers) }

  private static func header(_ name: String, in headers: String) -> String? {
    let start = name + ": "
    return headers.split(separator: "\r\n").first { $0.utf8.starts(with: start.utf8) }
      .map { String($0.dropFirst(start.count)) }
  }
}

extension String {
  /// Whether a subject is one of the subjects of a pattern, whose parts may be `*` and a last `>`.
  func isSubject(of pattern: String) -> Bool {
    let (parts, wanted) = (split(separator: "."), pattern.split(separator: "."))
    for (index, part) in wanted.enumerated() {
      if part == ">" { return parts.count > index }
      guard index < parts.count, part == "*" || part == parts[index] else { return false }
    }
    return parts.count == wanted.count
  }
}
