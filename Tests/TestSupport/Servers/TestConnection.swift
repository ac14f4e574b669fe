internal import WormholeCTesting
internal import WormholeSyscalls

/// A plain connection to a server, with as much of the NATS protocol as a test of servers needs.
///
/// The connection belongs to one thread. A server that does not reply in time is an error, as is a
/// connection that the server has closed.
package final class TestConnection {
  /// The server's first line: `INFO {…}`.
  package private(set) var information = ""
  private let descriptor: Descriptor
  private var buffer: [UInt8] = []
  private let patience: Duration

  /// Connects, and reads the server's first line.
  ///
  /// - Parameters:
  ///   - network: the file of the network namespace to connect from; nil for this process's own.
  ///   - patience: how long the connection, and each reply, may take.
  package init(
    _ address: String, _ port: Int, network: String? = nil, patience: Duration = .seconds(5)
  ) throws {
    self.patience = patience
    let number = testing_connect(network, address, CInt(port), patience.milliseconds)
    guard number >= 0 else { throw Errno.current }
    descriptor = Descriptor(adopting: number)
    information = try line()
  }

  /// Connects, reads the server's first line, and gives a token; the server must accept the token.
  package convenience init(
    _ address: String, _ port: Int, token: String, network: String? = nil,
    patience: Duration = .seconds(5)
  ) throws {
    try self.init(address, port, network: network, patience: patience)
    try write(
      #"CONNECT {"verbose":false,"pedantic":false,"protocol":1,"headers":true,"#
        + #""no_responders":true,"lang":"swift","version":"0","auth_token":"\#(token)"}"#)
    try write("PING")
    let answer = try reply()
    guard answer == "PONG" else { throw Refused(description: answer) }
  }

  /// Writes one line.
  package func write(_ line: String) throws { try descriptor.write(line + "\r\n") }

  /// Publishes any bytes.
  package func publish(_ subject: String, _ bytes: [UInt8]) throws {
    let line = Array("PUB \(subject) \(bytes.count)\r\n".utf8)
    try descriptor.write(line + bytes + [0x0d, 0x0a])
  }

  /// Returns the server's next line, without its end.
  package func line() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: 0x0a) {
        let line = buffer[..<end]
        buffer.removeFirst(end + 1)
        return String(decoding: line.last == 0x0d ? line.dropLast() : line, as: UTF8.self)
      }
      try receive()
    }
  }

  /// Returns the next line that is a reply: no later `INFO`, and no `PING`, which is replied to.
  private func reply() throws -> String {
    // The pings of a server that does not reply would keep the loop alive.
    let end = Instant.now + patience
    while true {
      guard Instant.now < end else {
        throw TooLate(description: "the server did not reply within \(patience)")
      }
      let line = try line()
      if line == "PING" {
        try write("PONG")
      } else if line.hasPrefix("INFO ") {
        information = line
      } else {
        return line
      }
    }
  }

  /// Sends a request, and returns the body of the reply; nil if the server has no responders.
  ///
  /// - Parameter inbox: the beginning of the subject for the reply, which the rights must permit.
  package func request(
    _ subject: String, _ body: String = "", inbox: String = "_INBOX.test"
  ) throws -> String? {
    let inbox = "\(inbox).\(Processes.current).\(Clocks.sinceBoot)"
    try write("SUB \(inbox) 1")
    try write("UNSUB 1 1")
    try write("PUB \(subject) \(inbox) \(body.utf8.count)")
    try write(body)
    let line = try reply()
    let words = line.split(separator: " ")
    guard let size = words.last.flatMap({ Int($0) }) else { throw Refused(description: line) }
    while buffer.count < size + 2 { try receive() }
    var bytes = Array(buffer[..<size])
    buffer.removeFirst(size + 2)
    // A reply with headers alone is a status: no responders, or no leader.
    if words.first == "HMSG", let headers = Int(words[words.count - 2]) {
      bytes.removeFirst(headers)
      if bytes.isEmpty { return nil }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private func receive() throws {
    switch testing_wait_for_bytes(descriptor.rawValue, patience.milliseconds) {
    case 0: throw TooLate(description: "the server did not reply within \(patience)")
    case ..<0: throw Errno.current
    default: break
    }
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
    defer { chunk.deallocate() }
    let count = try descriptor.read(into: chunk)
    guard count > 0 else { throw Refused(description: "the server closed the connection") }
    buffer.append(contentsOf: chunk[..<count])
  }

  /// A reply that is an error, or the end of the connection.
  package struct Refused: Error, CustomStringConvertible {
    package let description: String
  }
}

extension TestConnection {
  /// Returns the body of a page of the server's monitor; throws unless its status is 200.
  package static func page(
    _ path: String, _ address: String, _ port: Int, network: String? = nil,
    patience: Duration = .seconds(5)
  ) throws -> String {
    let number = testing_connect(network, address, CInt(port), patience.milliseconds)
    guard number >= 0 else { throw Errno.current }
    let descriptor = Descriptor(adopting: number)
    try descriptor.write("GET \(path) HTTP/1.0\r\n\r\n")
    var bytes: [UInt8] = []
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
    defer { chunk.deallocate() }
    while true {
      guard testing_wait_for_bytes(number, patience.milliseconds) > 0 else {
        throw TooLate(description: "\(path) was not sent within \(patience)")
      }
      let count = try descriptor.read(into: chunk)
      if count == 0 { break }
      bytes.append(contentsOf: chunk[..<count])
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.hasPrefix("HTTP/1.0 200"), let end = text.firstRange(of: "\r\n\r\n") else {
      throw Refused(description: text)
    }
    return String(text[end.upperBound...])
  }
}

extension Duration {
  fileprivate var milliseconds: CInt { CInt(self / .milliseconds(1)) }
}
