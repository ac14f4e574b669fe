package import WormholeSyscalls

/// Passes connections on to a real server, line by line, and lies: drops, delays, repeats, cuts,
/// suspends, and replies with errors.
///
/// The proxy has real sockets and no thread: its owner calls ``step(_:)``. From one seed it draws
/// the same lies, for the same lines. After ``isHonest`` is set, the proxy passes everything on,
/// except on connections that were silenced before.
package final class LyingProxy {
  /// How often the proxy lies, for each thousand of the lines in both directions.
  package struct Lies: Sendable {
    package var drop = 10
    package var duplicate = 10
    package var delay = 20
    package var cut = 6
    package var silence = 2
    package var error = 3
    package var refusal = 20

    package init() {}
  }

  package var lies = Lies()
  package var isHonest = false
  /// Chooses lines of clients that are dropped, also while the proxy is honest.
  package var loses: (String) -> Bool = { _ in false }
  /// Chooses requests of clients to which the proxy replies that no program listens, also while it
  /// is honest.
  package var ignores: (String) -> Bool = { _ in false }
  /// Chooses lines of the server that are dropped, also while the proxy is honest.
  package var withholds: (String) -> Bool = { _ in false }
  /// How many lies of each kind were told.
  package private(set) var counts: [String: Int] = [:]

  private let listener: LoopbackListener
  private let target: UInt16
  private var links: [ProxiedLink] = []
  private var random: SeededRandom

  /// - Parameter target: the port of the server, on loopback.
  package init(to target: Int, seed: UInt64) throws(Errno) {
    listener = try LoopbackListener()
    self.target = UInt16(target)
    random = SeededRandom(seed: seed)
  }

  package var address: String { "nats://127.0.0.1:\(listener.port)" }

  /// Passes on what has arrived and is due; returns whether there was anything.
  package func step(_ now: Instant) -> Bool {
    var hasWorked = false
    while let client = listener.accept() {
      hasWorked = true
      guard let server = try? Descriptor.connecting(toLoopbackPort: target, isVersionSix: false)
      else { continue }
      links.append(ProxiedLink(client, server))
    }
    for link in links where !link.isSilent {
      for way in [link.up, link.down] {
        while let line = way.next() { pass(line, way, link, now) }
        if way.move(now) { hasWorked = true }
      }
    }
    links.removeAll { $0.up.isOver || $0.down.isOver }
    return hasWorked
  }

  /// Ends all connections.
  package func dropConnections() { links = [] }

  private func tells(_ frequency: Int, _ kind: String) -> Bool {
    guard !isHonest, Int.random(in: 0..<1000, using: &random) < frequency else { return false }
    counts[kind, default: 0] += 1
    return true
  }

  private func pass(
    _ line: [UInt8], _ way: ProxiedWay, _ link: ProxiedLink, _ now: Instant
  ) {
    let text = String(decoding: line.prefix(4096), as: UTF8.self)
    if way === link.down, withholds(text) {
      counts["withheld", default: 0] += 1
      return
    }
    if way === link.up {
      if loses(text) {
        counts["loss", default: 0] += 1
        return
      }
      let words = text.prefix { !$0.isNewline }.split(separator: " ")
      if words.first == "SUB", words[1].hasPrefix("_INBOX.") { link.inbox = String(words.last!) }
      if words.first?.hasSuffix("PUB") == true, words.count > 3, ignores(text) {
        counts["ignored", default: 0] += 1
        let status = "NATS/1.0 503\r\n\r\n"
        let size = "\(status.utf8.count) \(status.utf8.count)"
        return link.down.enqueue(
          Array("HMSG \(words[2]) \(link.inbox) \(size)\r\n\(status)\r\n".utf8))
      }
    }
    var line = line
    if way === link.down {
      if tells(lies.error, "error") {
        way.enqueue(Array(Self.errors.randomElement(using: &random)!.utf8))
      }
      if let refusal = refusal(of: line), tells(lies.refusal, "refusal") { line = refusal }
    }
    if tells(lies.silence, "silence") { link.isSilent = true }
    if tells(lies.drop, "drop") { return }
    if tells(lies.duplicate, "duplicate") { way.enqueue(line) }
    if tells(lies.delay, "delay") {
      way.enqueue(line, at: now + .milliseconds(Int.random(in: 1...1500, using: &random)))
    } else if tells(lies.cut, "cut") {
      way.enqueue(Array(line.prefix(Int.random(in: 0...line.count, using: &random))))
      way.endsWhenSent = true
    } else {
      way.enqueue(line)
    }
  }

  /// Errors at which no bridge may end: each concerns a moment, or a subject that no bridge uses.
  private static let errors = [
    "-ERR 'Stale Connection'\r\n", "-ERR 'Slow Consumer'\r\n", "-ERR ''\r\n",
    "-ERR 'Permissions Violation for Publish to \"x\"'\r\n",
  ]

  /// The same reply of JetStream with an error in place of its content; nil for other lines.
  private func refusal(of line: [UInt8]) -> [UInt8]? {
    guard line.starts(with: Array("MSG ".utf8)), let end = line.firstIndex(of: 0x0A),
      end + 1 < line.count, line[end + 1] == UInt8(ascii: "{")
    else { return nil }
    let code = [10008, 10023, 10026, 10059, 10077, 10164].randomElement(using: &random)!
    let text = #"{"error":{"code":503,"err_code":\#(code),"description":"a lie"}}"#
    let words = String(decoding: line[..<end], as: UTF8.self).split { $0 == " " || $0.isNewline }
    return Array((words.dropLast() + ["\(text.utf8.count)"]).joined(separator: " ").utf8)
      + Array("\r\n\(text)\r\n".utf8)
  }
}

/// A connection of a client, and the one to the server for it.
private final class ProxiedLink {
  let up: ProxiedWay
  let down: ProxiedWay
  var isSilent = false
  /// The number of the client's subscription to replies.
  var inbox = ""

  init(_ client: consuming Descriptor, _ server: consuming Descriptor) {
    let (client, server) = (ProxiedSocket(client), ProxiedSocket(server))
    up = ProxiedWay(from: client, to: server)
    down = ProxiedWay(from: server, to: client)
  }
}

private final class ProxiedSocket {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// One direction of a connection.
private final class ProxiedWay {
  var endsWhenSent = false
  private(set) var isOver = false
  private let source: ProxiedSocket
  private let target: ProxiedSocket
  private var arrived: [UInt8] = []
  private var outgoing: [UInt8] = []
  private var delayed: [(at: Instant, bytes: [UInt8])] = []
  private var buffer = [UInt8](repeating: 0, count: 65_536)

  init(from source: ProxiedSocket, to target: ProxiedSocket) {
    (self.source, self.target) = (source, target)
  }

  func enqueue(_ bytes: [UInt8], at time: Instant? = nil) {
    guard !endsWhenSent else { return }
    if let time { delayed.append((time, bytes)) } else { outgoing += bytes }
  }

  /// Reads and sends what is possible now; returns whether anything was.
  func move(_ now: Instant) -> Bool {
    var hasMoved = false
    do {
      while let count = try source.descriptor.receive(into: &buffer) {
        hasMoved = true
        guard count > 0 else {
          isOver = true
          break
        }
        arrived += buffer[..<count]
        guard arrived.count < 4 << 20 else { break }
      }
      for (time, bytes) in delayed where time <= now { outgoing += bytes }
      delayed.removeAll { $0.at <= now }
      if !outgoing.isEmpty, let count = try target.descriptor.send(outgoing) {
        outgoing.removeFirst(count)
        hasMoved = hasMoved || count > 0
      }
    } catch {
      isOver = true
    }
    if endsWhenSent, outgoing.isEmpty { isOver = true }
    return hasMoved
  }

  /// Takes the next complete line, with its body, from the bytes that have arrived.
  func next() -> [UInt8]? {
    guard let end = arrived.firstIndex(of: 0x0A) else { return nil }
    var size = end + 1
    let words = String(decoding: arrived[..<end], as: UTF8.self)
      .split { $0 == " " || $0.isNewline }
    if let verb = words.first, ["PUB", "HPUB", "MSG", "HMSG"].contains(verb),
      let body = words.last.flatMap({ Int($0) })
    {
      size += body + 2
    }
    guard arrived.count >= size else { return nil }
    defer { arrived.removeFirst(size) }
    return Array(arrived[..<size])
  }
}
