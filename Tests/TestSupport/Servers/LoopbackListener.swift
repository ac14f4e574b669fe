internal import WormholeCTesting
package import WormholeSyscalls

/// A socket that listens on a free port of the loopback interface, for servers in tests.
package struct LoopbackListener: ~Copyable, Sendable {
  package let port: UInt16
  package let descriptor: Descriptor

  package init(isVersionSix: Bool = false) throws(Errno) {
    var port: UInt16 = 0
    let number = testing_listen(isVersionSix ? 1 : 0, &port)
    guard number != -1 else { throw Errno.current }
    descriptor = Descriptor(adopting: number)
    self.port = port
  }

  /// Returns the next connection, which never blocks; nil if there is none.
  package func accept() -> Descriptor? {
    let number = testing_accept(descriptor.rawValue)
    return number == -1 ? nil : Descriptor(adopting: number)
  }

  /// Makes the close of a connection report an error to the other end.
  package static func resetAtClose(_ connection: borrowing Descriptor) {
    testing_reset_at_close(connection.rawValue)
  }
}
