import WormholeSyscalls

/// The checks on each request before anything else is done with it.
///
/// The token in the address is the right to see the page. The token alone does not suffice: a page
/// of another site may have any host name resolve to this address, and may send requests with the
/// user's browser. So the host must be an address in digits or `localhost`, which no other site's
/// name is, and a request that another page has caused is refused by the origin in it.
package struct WebGuard: Sendable {
  private let token: [UInt8]
  private let port: UInt16
  private let isLoopback: Bool

  package init(token: String, _ address: WebAddress, port: UInt16) {
    self.token = Array(token.utf8)
    self.port = port
    isLoopback = address.isLoopback
  }

  /// Returns 32 hexadecimal digits: 128 bits of the system's random numbers.
  package static func randomToken() -> String {
    var random = SystemRandomNumberGenerator()
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: (0..<32).map { _ in digits[Int(random.next() & 15)] }, as: UTF8.self)
  }

  /// Checks a request, and returns its path behind the token.
  package func path(of request: WebRequest) throws(WebRefusal) -> String {
    guard let host = request.header("host"), isOwn(host) else {
      throw WebRefusal(421, "the host of the request is not this server's address")
    }
    let origin = request.header("origin")
    let site = request.header("sec-fetch-site")
    guard origin.map({ $0 == "http://\(host)" }) ?? !request.has("origin"),
      site.map({ ["none", "same-origin"].contains($0) }) ?? !request.has("sec-fetch-site")
    else { throw WebRefusal(403, "another page has caused the request") }
    let parts = request.path.utf8.dropFirst().split(
      separator: 0x2F, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, isToken(parts[0]) else {
      throw WebRefusal(403, "the token is missing or wrong; open the address that was printed")
    }
    if request.method == .post {
      guard origin != nil, let sent = request.header("x-wormhole-token"), isToken(sent.utf8) else {
        throw WebRefusal(403, "a change needs the page's origin, and the token in a header")
      }
    }
    return String(Substring(parts[1]))
  }

  /// Compares in a time that does not depend on the number of equal bytes.
  private func isToken(_ sent: some Collection<UInt8>) -> Bool {
    guard sent.count == token.count else { return false }
    return zip(sent, token).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private func isOwn(_ host: String) -> Bool {
    let end = ":\(port)"
    // Browsers leave out the port of the scheme, even if the address has it.
    guard host.ends(with: end) || port == 80 else { return false }
    let length = host.ends(with: end) ? end.utf8.count : 0
    let name = String(decoding: host.utf8.dropLast(length), as: UTF8.self)
    if name == "localhost" { return true }
    let isVersionSix = name.begins(with: "[") && name.ends(with: "]")
    let digits = isVersionSix ? Array(name.utf8.dropFirst().dropLast()) : Array(name.utf8)
    guard let kind = PortListener.kind(ofAddress: String(decoding: digits, as: UTF8.self)),
      kind.isVersionSix == isVersionSix
    else { return false }
    return kind.isLoopback || !isLoopback
  }
}

/// An address and a port to listen on: `127.0.0.1:8080`, `[::1]:0`.
package struct WebAddress: Sendable, Equatable {
  package let host: String
  package let port: UInt16
  package let isLoopback: Bool
  private let isVersionSix: Bool

  /// Parses a text; nil unless it is an address in digits and a port.
  package init?(_ text: String) {
    guard let colon = text.utf8.lastIndex(of: 0x3A) else { return nil }
    let digits = text[text.index(after: colon)...]
    // An integer's text may have a sign, which a port has not.
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits) else {
      return nil
    }
    var host = text[..<colon].utf8
    if host.first == 0x5B, host.last == 0x5D { host = host.dropFirst().dropLast() }
    self.host = text[..<colon] == "localhost" ? "127.0.0.1" : String(Substring(host))
    guard let kind = PortListener.kind(ofAddress: self.host),
      kind.isVersionSix == (text.utf8.first == 0x5B)
    else { return nil }
    (isLoopback, isVersionSix, self.port) = (kind.isLoopback, kind.isVersionSix, port)
  }

  /// The address of the page, for a browser.
  package func page(port: UInt16, token: String) -> String {
    "http://\(isVersionSix ? "[\(host)]" : host):\(port)/\(token)/"
  }
}
