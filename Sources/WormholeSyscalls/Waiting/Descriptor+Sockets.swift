internal import WormholeCLinux

/// Connections over TCP to a server on this host.
///
/// No call on such a connection blocks, except the wait at the end.
extension Descriptor {
  /// Begins a connection to a port of the loopback interface.
  ///
  /// The kernel continues in the background. The connection becomes writable once the server has
  /// accepted it; if the connection fails, ``receive(into:)`` throws the reason.
  package static func connecting(
    toLoopbackPort port: UInt16, isVersionSix: Bool
  ) throws(Errno) -> Descriptor {
    let version: CInt = isVersionSix ? 1 : 0
    let socket = Descriptor(adopting: try perform(.socket) { linux_socket(version) })
    let number = try socket.number
    _ = try perform(.connect, on: number) { linux_connect_loopback(number, version, port) }
    return socket
  }

  /// Reads the bytes that have arrived; 0 at the end of the connection, nil if none have arrived.
  package func receive(into buffer: inout [UInt8]) throws(Errno) -> Int? {
    let socket = try number
    return try ignoring(
      .wouldBlock,
      perform(.receive, on: socket) {
        buffer.withUnsafeMutableBytes { linux_receive(socket, $0.baseAddress, $0.count) }
      })
  }

  /// Sends as many bytes as the kernel has room for, from a position of the array on.
  ///
  /// A connection that the server has closed causes an error and no signal.
  ///
  /// - Returns: the number of bytes; nil without room.
  package func send(_ bytes: [UInt8], from start: Int = 0) throws(Errno) -> Int? {
    let socket = try number
    return try ignoring(
      .wouldBlock,
      perform(.send, on: socket) {
        bytes[start...].withUnsafeBytes { linux_send(socket, $0.baseAddress, $0.count) }
      })
  }

  /// Waits until this descriptor is readable, or writable if `writes`, or until another thread
  /// raises the wake descriptor.
  ///
  /// The wait also ends at the deadline, and when a signal arrives: the caller checks again.
  package func wait(
    writes: Bool, or wake: borrowing WakeDescriptor, until deadline: Instant?
  ) throws(Errno) {
    try pollTwo(try number, writes, try wake.descriptor.number, deadline)
  }
}

extension WakeDescriptor {
  /// Waits until another thread raises this descriptor, or until the deadline.
  package func wait(until deadline: Instant?) throws(Errno) {
    try pollTwo(-1, false, try descriptor.number, deadline)
  }
}

private func pollTwo(
  _ first: CInt, _ writes: Bool, _ second: CInt, _ deadline: Instant?
) throws(Errno) {
  try ignoring(
    .interrupted,
    perform(.poll, on: first, retrying: false) {
      linux_poll_two(first, writes ? 1 : 0, second, millisecondsLeft(until: deadline))
    })
}
