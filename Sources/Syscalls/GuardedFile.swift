internal import CLinux

/// An open file that a forked copy of this process does not have: in the copy its number leads to
/// nothing.
///
/// For locks that are to end with this process. A copy has the same description of the file and
/// would keep the lock. Programs that are started by exec lose the file anyway, as any descriptor
/// here; a copy that was made past the C library's `fork`, by a bare clone(2), is not reached.
package final class GuardedFile: Sendable {
  private final class Open: Sendable {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }

  private let file: Monitor<Open?>
  private let number: Int32

  /// Opens a name in a directory.
  ///
  /// - Parameter isGuarded: false only for a test that shows what the guard is good for.
  package init(
    opening name: UnsafePointer<CChar>, in directory: borrowing Descriptor, _ flags: OpenFlags,
    mode: FileMode = 0, isGuarded: Bool = true
  ) throws(Errno) {
    guard linux_keep_forks_out() == 0 else { throw Errno.current }
    defer { linux_let_forks_in() }
    let descriptor = try directory.open(name, flags, mode: mode)
    if isGuarded {
      guard linux_note_for_forks(descriptor.rawValue) == 0 else { throw Errno.current }
    }
    number = descriptor.rawValue
    file = Monitor(Open(descriptor))
  }

  deinit { close() }

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
  package func close() {
    file.withLock { file in
      guard file != nil else { return }
      // It works if it has worked before.
      let keepsForksOut = linux_keep_forks_out() == 0
      file = nil
      linux_forget_for_forks(number)
      if keepsForksOut { linux_let_forks_in() }
    }
  }
}
