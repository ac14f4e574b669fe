package import WormholeHubProtocol
internal import WormholeSyscalls

/// A descriptor that its holder can give up.
private final class HeldSocket {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// A connection of a client to a ``LyingServer``.
package final class LyingClient: HubConnection {
  package private(set) var session = HubSession()
  private(set) var received = 0
  var isSilent = false
  var closesWhenSent = false
  var closesWithReset = false
  var cutAfter: Int?
  private(set) var sent = 0
  package private(set) var isClosed = false
  private var socket: HeldSocket?
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
    received += count
    session.append(buffer[..<count])
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

  func next() -> HubLine? { session.next() }
}
