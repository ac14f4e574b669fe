/// A line of a client, with its body, to which a server reacts.
package enum HubLine {
  case connect(String)
  case ping
  case publish(HubMessage)
  /// A line without a reaction, such as a change of the subscriptions.
  case other
}

/// The received bytes and the subscriptions of a connection.
package struct HubSession {
  package private(set) var subscriptions: [(subject: String, id: String)] = []
  private var arrived: [UInt8] = []

  package init() {}

  package mutating func append(_ bytes: ArraySlice<UInt8>) { arrived += bytes }

  /// Takes the next complete line, with its body, from the bytes that have arrived.
  package mutating func next() -> HubLine? {
    guard let end = arrived.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let text = String(decoding: arrived[..<end], as: UTF8.self)
    let words = text.split { $0 == " " || $0.isNewline }.map(String.init)
    let verb = words.first ?? ""
    if verb == "PUB" || verb == "HPUB" { return publication(words, bodyAt: end + 1) }
    arrived.removeFirst(end + 1)
    switch verb {
    case "CONNECT": return .connect(text)
    case "PING": return .ping
    case "SUB": subscriptions.append((words[1], words[words.count - 1]))
    case "UNSUB": subscriptions.removeAll { $0.id == words[1] }
    default: break
    }
    return .other
  }

  /// Takes a message with its line; nil if a part of the body has not arrived.
  private mutating func publication(_ words: [String], bodyAt start: Int) -> HubLine? {
    let end = start + (Int(words[words.count - 1]) ?? 0)
    guard arrived.count >= end + 2 else { return nil }
    let isPlain = words[0] == "PUB"
    let headerSize = isPlain ? 0 : Int(words[words.count - 2]) ?? 0
    let body = arrived[start..<end]
    let headers = String(decoding: body.prefix(headerSize), as: UTF8.self)
      .split(separator: "\r\n").dropFirst()
    let message = HubMessage(
      words[1], Array(body.dropFirst(headerSize)),
      headers: headers.map { $0 + "\r\n" }.joined(),
      reply: words.count > (isPlain ? 3 : 4) ? words[2] : nil)
    arrived.removeFirst(end + 2)
    return .publish(message)
  }
}
