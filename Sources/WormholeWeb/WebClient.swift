import WormholeSyscalls

/// A connection of a client, of which the server's thread alone knows.
final class WebClient {
  private enum Phase {
    /// A request is awaited, or arrives.
    case reading
    /// The handler has the request.
    case asked(staysOpen: Bool)
    case replying(staysOpen: Bool)
    /// The number is that of the latest document sent.
    case streaming(Int)
  }

  private let socket: Descriptor
  private var parser: WebRequestParser
  private var phase = Phase.reading
  /// When the connection began to wait for a request.
  private var idleSince = Instant.now
  private var outgoing: [UInt8] = []
  private var sent = 0
  /// When ``expire(_:)`` is due.
  private(set) var deadline: Instant

  init(_ socket: consuming Descriptor, _ limits: WebLimits) {
    self.socket = socket
    parser = WebRequestParser(limits)
    deadline = .now + limits.arrival
  }

  var number: CInt { socket.rawValue }

  /// Since when a request is awaited, or arrives; nil while a request is served.
  var waitingSince: Instant? { if case .reading = phase { idleSince } else { nil } }

  var isStream: Bool { if case .streaming = phase { true } else { false } }

  var isSending: Bool { sent < outgoing.count }

  /// Whether bytes of the client are wanted: while a request is served, none are taken.
  var reads: Bool {
    switch phase {
    case .reading, .streaming: true
    case .asked, .replying: false
    }
  }

  /// Reads once; returns false if the connection is over.
  func receive(_ buffer: inout [UInt8], _ limits: WebLimits) -> Bool {
    let count: Int?
    do throws(Errno) {
      count = try socket.receive(into: &buffer)
    } catch {
      return false
    }
    guard let count else { return true }
    guard count > 0 else { return false }
    // A stream takes no further request.
    if isStream { return true }
    if !parser.isInside { deadline = .now + limits.arrival }
    parser.feed(buffer[..<count])
    return true
  }

  /// Returns a request that has arrived completely, unless one is being served.
  func request() throws(WebRefusal) -> WebRequest? {
    guard case .reading = phase, let request = try parser.next() else { return nil }
    phase = .asked(staysOpen: request.staysOpen)
    // The handler's time is its own affair: it replies, or the process ends.
    deadline = Instant(nanoseconds: .max)
    return request
  }

  func send(_ response: WebResponse, _ limits: WebLimits, last: Bool = false) {
    var staysOpen = !last
    if case .asked(false) = phase { staysOpen = false }
    phase = .replying(staysOpen: staysOpen)
    (outgoing, sent) = (response.head(staysOpen: staysOpen) + response.body, 0)
    deadline = .now + limits.silence
  }

  func beginStream(_ limits: WebLimits) {
    phase = .streaming(0)
    (outgoing, sent) = (WebResponse.streamHead, 0)
    deadline = .now + limits.silence
  }

  /// Begins to send the newest document to a stream that has taken all before it.
  func take(_ document: WebDocument?, _ limits: WebLimits) {
    guard case .streaming(let number) = phase, let document, !isSending, document.number > number
    else { return }
    phase = .streaming(document.number)
    // The bytes are those of the document, and not a copy.
    (outgoing, sent) = (document.event, 0)
    deadline = .now + limits.silence
  }

  /// Writes what the kernel has room for; returns false if the connection is over.
  func write(_ limits: WebLimits) -> Bool {
    while isSending {
      let count: Int?
      do throws(Errno) {
        count = try socket.send(outgoing, from: sent)
      } catch {
        return false
      }
      guard let count, count > 0 else { return true }
      sent += count
      deadline = .now + limits.silence
    }
    (outgoing, sent) = ([], 0)
    switch phase {
    case .replying(let staysOpen):
      guard staysOpen else { return false }
      (phase, idleSince) = (.reading, .now)
      deadline = .now + (parser.isInside ? limits.arrival : limits.silence)
    case .streaming: deadline = .now + limits.heartbeat
    case .reading, .asked: break
    }
    return true
  }

  /// Ends what has taken too long; returns false if the connection is over.
  func expire(_ limits: WebLimits) -> Bool {
    switch phase {
    case .reading where parser.isInside:
      send(WebResponse(WebRefusal(408, "the request did not arrive in time")), limits, last: true)
      return write(limits)
    case .streaming where !isSending:
      (outgoing, sent) = (Array(": the connection lives\n\n".utf8), 0)
      deadline = .now + limits.silence
      return write(limits)
    case .reading, .replying, .streaming: return false
    case .asked: return true
    }
  }
}
