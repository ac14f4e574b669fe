internal import WormholeCLinux

/// A socket that listens for connections over TCP.
///
/// No call on the socket, or on a connection from it, blocks.
package struct PortListener: ~Copyable, Sendable {
  package let descriptor: Descriptor
  package let port: UInt16

  /// Listens at an address in digits; the port 0 stands for any free port.
  package init(address: String, port: UInt16) throws(Errno) {
    var actual: UInt16 = 0
    descriptor = Descriptor(
      adopting: try perform(.listen) { linux_listen(address, port, &actual) })
    self.port = actual
  }

  /// Returns the next connection; nil if none waits.
  package func accept() throws(Errno) -> Descriptor? {
    let socket = try descriptor.number
    return try ignoring(
      .wouldBlock, Descriptor(adopting: perform(.accept, on: socket) { linux_accept(socket) }))
  }

  /// Returns what kind of address a text is; nil unless it is an address in digits.
  package static func kind(ofAddress text: String) -> (isVersionSix: Bool, isLoopback: Bool)? {
    let kind = linux_address_kind(text)
    return kind == -1 ? nil : (kind & 2 != 0, kind & 1 != 0)
  }
}
