internal import WormholeSyscalls

/// A descriptor that its holder can give up.
private final class HeldSocket {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// A connection of a client to a ``LyingServer``.
final class LyingClient {
  struct Message {
    let subject: String
    let reply: String?
    let headers: String
    let payload: [UInt8]

    func header(_ name: String) -> String? {
      headers.split(separator: "\r\n").first { $0.hasPrefix(name + ": ") }
        .map { String($0.dropFirst(name.utf8.count + 2)) }
    }
  }

  enum Line {
    case connect(String)
    case ping, pong
    case subscribe(String, String)
    case unsubscribe(String)
    case publish(Message)
  }

  var subscriptions: [(subject: String, id: String)] = []
  var isSilent = false
  var closesWhenSent = false
  var closesWithReset = false
  var cutAfter: Int?
  private(set) var sent = 0
  private(set) var isClosed = false
  private var socket: HeldSocket?
  private var arrived: [UInt8] = []
  private var outgoing: [UInt8] = []
  private var delayed: [(at: Instant, bytes: [UInt8])] = []
  private var buffer = [UInt8](repeating: 0, count: 16_384)

  init(_ socket: consuming Descriptor) { self.socket = HeldSocket(socket) }

  func close(reset: Bool = false) {
    if reset, let socket { LoopbackListener.resetAtClose(socket.descriptor) }
    socket = nil
    isClosed = true
  }

  func enqueue(_ bytes: [UInt8], at time: Instant? = nil) {
    guard !closesWhenSent else { return }
    if let time { delayed.append((time, bytes)) } else { outgoing += bytes }
  }

  var nextRelease: Instant? { isSilent ? nil : delayed.map(\.at).min() }

  /// Reads what has arrived; returns whether anything has.
  func read() -> Bool {
    guard !isSilent, let socket else { return false }
    guard let count = try? socket.descriptor.receive(into: &buffer) else { return false }
    guard count > 0 else {
      close()
      return true
    }
    arrived += buffer[..<count]
    return true
  }

  /// Sends what is due; returns whether anything was sent.
  func flush(_ now: Instant) -> Bool {
    guard !isSilent, !isClosed else { return false }
    for (time, bytes) in delayed where time <= now { outgoing += bytes }
    delayed.removeAll { $0.at <= now }
    if let cutAfter, sent + outgoing.count >= cutAfter {
      outgoing = Array(outgoing.prefix(max(0, cutAfter - sent)))
      closesWhenSent = true
    }
    let before = sent
    if !outgoing.isEmpty, let socket {
      let count = (try? socket.descriptor.send(outgoing)) ?? 0
      outgoing.removeFirst(count)
      sent += count
    }
    if closesWhenSent, outgoing.isEmpty { close(reset: closesWithReset) }
    return sent > before || isClosed
  }

  /// Takes the next complete line, with its body, from the bytes that have arrived.
  func next() -> Line? {
    guard let end = arrived.firstIndex(of: 0x0A) else { return nil }
    let text = String(decoding: arrived[..<end], as: UTF8.self)
    let words = text.split { $0 == " " || $0.isNewline }.map(String.init)
    guard let verb = words.first else {
      arrived.removeFirst(end + 1)
      return .pong
    }
    guard verb == "PUB" || verb == "HPUB" else {
      arrived.removeFirst(end + 1)
      switch verb {
      case "CONNECT": return .connect(text)
      case "PING": return .ping
      case "SUB": return .subscribe(words[1], words[words.count - 1])
      case "UNSUB": return .unsubscribe(words[1])
      default: return .pong
      }
    }
    let size = Int(words[words.count - 1]) ?? 0
    guard arrived.count >= end + 1 + size + 2 else { return nil }
    let isPlain = verb == "PUB"
    let headerSize = isPlain ? 0 : Int(words[words.count - 2]) ?? 0
    let body = arrived[(end + 1)..<(end + 1 + size)]
    let message = Message(
      subject: words[1], reply: words.count > (isPlain ? 3 : 4) ? words[2] : nil,
      headers: String(decoding: body.prefix(headerSize), as: UTF8.self),
      payload: Array(body.dropFirst(headerSize)))
    arrived.removeFirst(end + 1 + size + 2)
    return .publish(message)
  }
}
