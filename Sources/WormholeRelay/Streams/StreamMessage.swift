/// A message that a consumer of a stream has delivered.
package struct StreamMessage {
  package let subject: String
  package let headers: RelayHeaders
  package let payload: [UInt8]
  /// The position in the stream.
  package let sequence: UInt64
  /// When the server stored the message, in nanoseconds since 1970.
  package let timestamp: UInt64
  /// The number of messages that wait behind this message.
  package let pending: UInt64

  /// Returns the first value of a header; upper and lower case are alike in its name.
  package func header(_ name: String) -> String? {
    let wanted = name.lowercased()
    return headers.first { $0.name.lowercased() == wanted }?.value
  }
}

/// The latest message of a subject, read from any server that has a copy of the stream.
package struct LatestMessage {
  package let subject: String
  package let headers: RelayHeaders
  package let payload: [UInt8]
  package let sequence: UInt64
}

/// A position in a stream and in a consumer, as the reply subject of a delivery states it.
///
/// The subject is `$JS.ACK.<s>.<c>.<n>.<sseq>.<cseq>.<time>.<pending>`, or has the domain and the
/// account in front of `<s>`, and perhaps one part more at the end.
struct ConsumerPosition: Equatable {
  let stream: String
  let consumer: String
  let streamSequence: UInt64
  let consumerSequence: UInt64
  let timestamp: UInt64
  let pending: UInt64

  init?(_ subject: String) {
    let parts = subject.utf8.split(
      separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard (9...12).contains(parts.count), parts.count != 10, parts[0].elementsEqual("$JS".utf8),
      parts[1].elementsEqual("ACK".utf8)
    else { return nil }
    let first = parts.count == 9 ? 2 : 4
    let numbers = parts[(first + 2)...(first + 6)].compactMap { Digits.number($0) }
    guard numbers.count == 5 else { return nil }
    stream = String(decoding: parts[first], as: UTF8.self)
    consumer = String(decoding: parts[first + 1], as: UTF8.self)
    streamSequence = numbers[1]
    consumerSequence = numbers[2]
    timestamp = numbers[3]
    pending = numbers[4]
  }
}
