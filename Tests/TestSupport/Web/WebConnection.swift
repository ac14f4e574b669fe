internal import WormholeCTesting
internal import WormholeSyscalls

/// A plain connection to a server of HTTP on this host, for one thread.
///
/// A server that does not reply in time is an error.
package final class WebConnection {
  package struct Reply: Sendable {
    package let status: Int
    /// The head, with its first line.
    package let head: String
    package let body: String
  }

  private let descriptor: Descriptor
  private let port: Int
  private var buffer: [UInt8] = []

  package init(port: Int) throws {
    let number = testing_connect(nil, "127.0.0.1", CInt(port), Self.milliseconds)
    guard number >= 0 else { throw Errno.current }
    descriptor = Descriptor(adopting: number)
    self.port = port
  }

  private static var milliseconds: CInt { CInt(patience / .milliseconds(1)) }

  package func send(_ text: String) throws { try descriptor.write(text) }

  /// Sends a request.
  ///
  /// - Parameter headers: the fields after the host, which is the server's own unless given here.
  package func ask(
    _ path: String, method: String = "GET", _ headers: [String] = [], host: String? = nil,
    body: String? = nil
  ) throws {
    var lines = ["\(method) \(path) HTTP/1.1", "Host: \(host ?? "127.0.0.1:\(port)")"] + headers
    if let body { lines.append("Content-Length: \(body.utf8.count)") }
    try send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
  }

  /// Returns the next reply; of a stream, only its head.
  package func reply() throws -> Reply {
    let head = try text(until: "\r\n\r\n")
    let words = head.split(separator: " ")
    guard words.count > 1, let status = Int(words[1]) else {
      throw TooLate(description: "no reply: \(head)")
    }
    let length = head.lowercased().firstMatch(of: /\r\ncontent-length: *([0-9]+)/)?.1
    let count = length.flatMap { Int($0) } ?? 0
    while buffer.count < count { try receive() }
    let body = String(decoding: buffer[..<count], as: UTF8.self)
    buffer.removeFirst(count)
    return Reply(status: status, head: head, body: body)
  }

  /// Returns the data of the next event of a stream.
  package func event() throws -> String {
    while true {
      let text = try text(until: "\n\n")
      if text.hasPrefix("data: ") { return String(text.dropFirst(6)) }
    }
  }

  private func text(until end: String) throws -> String {
    let end = Array(end.utf8)
    var searched = 0
    while true {
      // The end may be in two pieces; what was searched is not searched again.
      if let range = buffer[searched...].firstRange(of: end) {
        let text = String(decoding: buffer[..<range.lowerBound], as: UTF8.self)
        buffer.removeFirst(range.upperBound)
        return text
      }
      searched = max(0, buffer.count - end.count)
      try receive()
    }
  }

  /// Waits until the server has closed the connection.
  package func waitForEnd() throws {
    while true {
      do {
        try receive()
      } catch is Ended {
        return
      }
    }
  }

  private struct Ended: Error {}

  private func receive() throws {
    guard testing_wait_for_bytes(descriptor.rawValue, Self.milliseconds) > 0 else {
      throw TooLate(description: "the server did not reply within \(patience)")
    }
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count: Int
    do throws(Errno) {
      count = try descriptor.receive(into: &chunk) ?? 0
    } catch {
      guard error == .connectionReset else { throw error }
      throw Ended()
    }
    guard count > 0 else { throw Ended() }
    buffer += chunk[..<count]
  }
}
