/// An open file that a forked child does not have, see ``Descriptor/open(_:_:mode:isGuarded:)``,
/// and that several threads may use until a thread closes it.
package final class GuardedFile: Sendable {
  private final class Open: Sendable {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }

  private let file: Monitor<Open?>

  /// Opens a name in a directory.
  ///
  /// - Parameter isGuarded: false only for a test that shows the effect of the guard.
  package init(
    opening name: UnsafePointer<CChar>, in directory: borrowing Descriptor, _ flags: OpenFlags,
    mode: FileMode = 0, isGuarded: Bool = true
  ) throws(Errno) {
    file = Monitor(Open(try directory.open(name, flags, mode: mode, isGuarded: isGuarded)))
  }

  /// Runs the body with the open file, unless the file has been closed.
  ///
  /// A close waits until the body returns.
  package func with<Result>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    try file.withLock { file throws(Errno) in
      guard let file else { return nil }
      return try body(file.descriptor)
    }
  }

  /// Closes the file; a second call does nothing.
  package func close() { file.withLock { $0 = nil } }
}
