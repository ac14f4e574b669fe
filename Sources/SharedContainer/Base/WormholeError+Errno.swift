package import Syscalls

/// The meaning of each system error for a caller, and the remedy.
///
/// The only place where errno becomes a code.
extension WormholeError {
  package init(_ error: Errno, _ operation: String, _ subject: String) {
    let (code, hint) = Self.meaning(of: error)
    let reason =
      error == .ownerDied
      ? "this process is a copy, as fork makes it, of the one that opened it" : error.description
    self.init(code, operation, subject, because: reason, hint: hint, errno: error)
  }

  /// The error of a call that resolves a path through `/proc`.
  package init(proc error: Errno, _ operation: String, _ subject: String) {
    self.init(error, operation, subject)
    guard error == .noSuchFile, ProcessIdentity.current.namespace == 0 else { return }
    self.init(
      .system, operation, subject,
      because: "/proc is not there, which has to tell where things lie",
      hint: "mount it with 'mount -t proc proc /proc'")
  }

  /// Whether a retry may succeed: the system may grant the operation later.
  package var mayPass: Bool { errno != nil && (code == .exhausted || code == .system) }

  private static func meaning(of error: Errno) -> (Code, String?) {
    switch error {
    case .noSuchFile:
      (.notFound, nil)
    case .accessDenied:
      (.permissionDenied, "look at the owner and the permissions of the directory")
    case .notPermitted:
      (
        .permissionDenied,
        "look at the owner of the directory, and whether its file system knows hard links"
      )
    case .readOnlyFileSystem:
      (.readOnly, nil)
    case .noSpace, .quotaExceeded:
      (.full, "make room on the file system and try again")
    case .fileTooLarge:
      (.tooLarge, "look at the limit that 'ulimit -f' shows")
    case .tooManyOpenFiles:
      (.exhausted, "close some files, or raise the limit that 'ulimit -n' shows")
    case .tooManyOpenFilesInSystem, .noMemory:
      (.exhausted, "the whole system has run out; try again later")
    case .wouldBlock:
      (
        .exhausted,
        "see what has so many processes or threads, or raise the limit that 'ulimit -u' shows"
      )
    case .tooManyLinks:
      (.refused, "symbolic links are not followed")
    case .notADirectory, .isADirectory, .noDevice, .crossDevice:
      (.refused, "something of another kind stands in its place")
    case .nameTooLong:
      (.invalidName, nil)
    case .timedOut:
      (.timedOut, nil)
    case .cancelled:
      (.cancelled, nil)
    case .ownerDied:
      (.forked, "open the container anew in the copy")
    default:
      (.system, nil)
    }
  }
}
