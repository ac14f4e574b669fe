package import Syscalls

/// What each error of the system means to a caller, and what can be done about it.
///
/// The one place where errno becomes a code.
extension WormholeError {
  package init(_ error: Errno, _ operation: String, _ subject: String) {
    let (code, hint) = Self.meaning(of: error)
    let reason =
      error == .ownerDied
      ? "this process is a copy, as fork makes it, of the one that opened it" : error.description
    self.init(code, operation, subject, because: reason, hint: hint, errno: error)
  }

  /// What the system has said where `/proc` has to tell where something lies.
  package init(proc error: Errno, _ operation: String, _ subject: String) {
    self.init(error, operation, subject)
    guard error == .noSuchFile, ProcessIdentity.current.namespace == 0 else { return }
    self.init(
      .system, operation, subject,
      because: "/proc is not there, which has to tell where things lie",
      hint: "mount it with 'mount -t proc proc /proc'")
  }

  /// What the system has said of a part of a member's directory; where that is not for this user to
  /// write to, whose it is.
  package init(
    _ error: Errno, _ operation: String, _ home: MemberDirectory, _ part: MemberDirectory.Part
  ) {
    self.init(error, operation, home.name)
    guard code == .permissionDenied, let denial = home.denial(of: part) else { return }
    hint = denial
  }

  /// Whether the system has refused something that it may grant a little later.
  package var mayPass: Bool { errno != nil && (code == .exhausted || code == .system) }

  /// What the system has said of a directory of a container, or of one above it there.
  init(
    _ error: Errno, _ operation: String, _ subject: String, in container: Container, _ path: String
  ) {
    self.init(error, operation, subject)
    guard code == .permissionDenied, let denial = container.firstDenial(on: path) else { return }
    hint = denial
  }

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
      (.tooLarge, nil)
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
