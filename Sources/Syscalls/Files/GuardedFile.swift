/// An open file that a forked copy of this process does not have, see
/// ``Descriptor/open(_:_:mode:isGuarded:)``, and that several threads may use until one closes it.
package final class GuardedFile: Sendable {
  private final class Open: Sendable {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }

  private let file: Monitor<Open?>

  /// Opens a name in a directory.
  ///
  /// - Parameter isGuarded: false only for a test that shows what the guard is good for.
  package init(
    opening name: UnsafePointer<CChar>, in directory: borrowing Descriptor, _ flags: OpenFlags,
    mode: FileMode = 0, isGuarded: Bool = true
  ) throws(Errno) {
    file = Monitor(Open(try directory.open(name, flags, mode: mode, isGuarded: isGuarded)))
  }

  /// Runs the body with the open file, unless it has been closed.
  ///
  /// Closing waits for the body to return.
  package func with<Result>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    try file.withLock { file throws(Errno) in
      guard let file else { return nil }
      return try body(file.descriptor)
    }
  }

  /// Closes the file; a second time it does nothing.
  package func close() { file.withLock { $0 = nil } }
}
