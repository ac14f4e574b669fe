internal import WormholeSyscalls

/// Where a server listens: a port of the loopback interface.
///
/// The protocol has no encryption here, and the token would be readable on any network.
package struct RelayAddress: Equatable, Sendable {
  package let port: UInt16
  package let isVersionSix: Bool

  /// Parses `nats://127.0.0.1:4222`; the host may also be `localhost` or `[::1]`.
  ///
  /// Without a port, the port is 4222. Any other host is refused.
  package init(_ text: String) throws(RelayFailure) {
    func refuse(_ cause: String) -> RelayFailure {
      RelayFailure(.address, "cannot use the address '\(text)': \(cause)")
    }
    guard text.begins(with: "nats://") else { throw refuse("it does not begin with 'nats://'") }
    var rest = Array(text.utf8.dropFirst("nats://".utf8.count))
    if rest.last == UInt8(ascii: "/") { rest.removeLast() }
    guard !rest.contains(UInt8(ascii: "@")) else {
      throw refuse("credentials belong in a file for the token")
    }
    let isVersionSix = rest.first == UInt8(ascii: "[")
    let hostEnd =
      isVersionSix
      ? rest.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? rest.count
      : rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.count
    let host = String(decoding: rest[..<hostEnd], as: UTF8.self)
    guard ["127.0.0.1", "localhost", "[::1]"].contains(host) else {
      throw refuse(
        "the host is not 127.0.0.1, [::1] or localhost; start a leaf server on this host")
    }
    self.isVersionSix = isVersionSix
    guard hostEnd < rest.count else {
      port = 4222
      return
    }
    guard rest[hostEnd] == UInt8(ascii: ":"), let number = Digits.number(rest[(hostEnd + 1)...]),
      let port = UInt16(exactly: number), port > 0
    else { throw refuse("the port is not a number from 1 to 65535") }
    self.port = port
  }
}

extension RelayAddress: CustomStringConvertible {
  package var description: String { "nats://\(isVersionSix ? "[::1]" : "127.0.0.1"):\(port)" }
}
