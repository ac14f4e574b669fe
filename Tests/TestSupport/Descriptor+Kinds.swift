package import WormholeSyscalls

/// Files of types that only tests create, by the kernel's numbers of the types.
extension Descriptor {
  /// Creates a FIFO; a process that opens a FIFO without ``OpenFlags/nonBlocking`` is blocked.
  package func makeFIFO(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    try makeFile(name, mode: mode, type: 0o010000)
  }

  /// Creates the name of a socket on which no process listens.
  package func makeSocket(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    try makeFile(name, mode: mode, type: 0o140000)
  }
}
