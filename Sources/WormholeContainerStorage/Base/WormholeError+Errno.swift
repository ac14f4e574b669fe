package import WormholeSyscalls

/// The meaning of each system error for a caller, and the remedy.
///
/// The only place where errno becomes a code.
extension WormholeError {
  package init(_ error: Errno, _ operation: String, _ subject: String) {
    let (code, hint) = Self.meaning(of: error)
    let reason =
      error == .ownerDied
      ? "this process is a forked child, and its parent process has opened the container"
      : error.description
    self.init(code, operation, subject, because: reason, hint: hint, errno: error)
  }

  /// The error of a call that resolves a path through `/proc`.
  package init(proc error: Errno, _ operation: String, _ subject: String) {
    self.init(error, operation, subject)
    guard error == .noSuchFile, ProcessIdentity.current.namespace == 0 else { return }
    self.init(
      .system, operation, subject,
      because: "/proc is not mounted, and its links are needed to find the path",
      hint: "run 'mount -t proc proc /proc'")
  }

  /// Whether a retry may succeed: the system may grant the operation later.
  package var mayPass: Bool { errno != nil && (code == .exhausted || code == .system) }

  private static func meaning(of error: Errno) -> (Code, String?) {
    switch error {
    case .noSuchFile:
      (.notFound, nil)
    case .accessDenied:
      (
        .permissionDenied,
        "check the owner and the permissions of the file or directory, and of its parents"
      )
    case .notPermitted:
      (
        .permissionDenied,
        "check the owner of the directory, and whether its file system supports hard links"
      )
    case .readOnlyFileSystem:
      (.readOnly, "mount the file system for writing")
    case .noSpace, .quotaExceeded:
      (.full, "free space on the file system, and try again")
    case .fileTooLarge:
      (.tooLarge, "raise the limit of 'ulimit -f'")
    case .tooManyOpenFiles:
      (.exhausted, "close some files, or raise the limit of 'ulimit -n'")
    case .tooManyOpenFilesInSystem, .noMemory:
      (.exhausted, "the whole system has run out of resources; try again later")
    case .wouldBlock:
      (
        .exhausted,
        "end processes or threads of the user, or raise the limit of 'ulimit -u'"
      )
    case .tooManyLinks:
      (.refused, "use a path without symbolic links")
    case .notADirectory, .isADirectory, .noDevice, .crossDevice:
      (.refused, "check the kind of the file at the path")
    case .nameTooLong:
      (.invalidName, nil)
    case .timedOut:
      (.timedOut, nil)
    case .cancelled:
      (.cancelled, nil)
    case .ownerDied:
      (.forked, "open the container again in the child")
    default:
      (.system, nil)
    }
  }
}

/// Runs `body`, and gives its error the operation and the subject that the caller knows.
package func naming<Result: ~Copyable>(
  _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String,
  _ body: () throws(Errno) -> Result
) throws(WormholeError) -> Result {
  do throws(Errno) {
    return try body()
  } catch {
    throw WormholeError(error, operation(), subject())
  }
}

package func naming<Result: ~Copyable>(
  _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String,
  _ body: @autoclosure () throws(Errno) -> Result
) throws(WormholeError) -> Result {
  try naming(operation(), subject(), body)
}
