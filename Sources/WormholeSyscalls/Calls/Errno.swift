import WormholeLibC

/// The reason why a system call failed.
package struct Errno: Error, Hashable, Sendable {
  package let rawValue: CInt

  package init(rawValue: CInt) { self.rawValue = rawValue }

  /// The calling thread's errno, to be read on the very next line after the call.
  package static var current: Errno { Errno(rawValue: errno) }
}

extension Errno {
  package static let notPermitted = Errno(rawValue: EPERM)
  package static let noSuchFile = Errno(rawValue: ENOENT)
  package static let noSuchProcess = Errno(rawValue: ESRCH)
  package static let interrupted = Errno(rawValue: EINTR)
  package static let inputOutput = Errno(rawValue: EIO)
  package static let badDescriptor = Errno(rawValue: EBADF)
  package static let noChild = Errno(rawValue: ECHILD)
  package static let wouldBlock = Errno(rawValue: EAGAIN)
  package static let noMemory = Errno(rawValue: ENOMEM)
  package static let accessDenied = Errno(rawValue: EACCES)
  package static let busy = Errno(rawValue: EBUSY)
  package static let fileExists = Errno(rawValue: EEXIST)
  package static let crossDevice = Errno(rawValue: EXDEV)
  package static let noDevice = Errno(rawValue: ENXIO)
  package static let notADirectory = Errno(rawValue: ENOTDIR)
  package static let isADirectory = Errno(rawValue: EISDIR)
  package static let invalidArgument = Errno(rawValue: EINVAL)
  package static let tooManyOpenFilesInSystem = Errno(rawValue: ENFILE)
  package static let tooManyOpenFiles = Errno(rawValue: EMFILE)
  package static let fileTooLarge = Errno(rawValue: EFBIG)
  package static let noSpace = Errno(rawValue: ENOSPC)
  package static let readOnlyFileSystem = Errno(rawValue: EROFS)
  package static let brokenPipe = Errno(rawValue: EPIPE)
  package static let deadlock = Errno(rawValue: EDEADLK)
  package static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
  package static let notImplemented = Errno(rawValue: ENOSYS)
  package static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
  package static let tooManyLinks = Errno(rawValue: ELOOP)
  package static let notSupported = Errno(rawValue: EOPNOTSUPP)
  package static let quotaExceeded = Errno(rawValue: EDQUOT)
  package static let timedOut = Errno(rawValue: ETIMEDOUT)
  package static let cancelled = Errno(rawValue: ECANCELED)
  /// A forked child uses an inherited object.
  package static let ownerDied = Errno(rawValue: EOWNERDEAD)
  package static let stale = Errno(rawValue: ESTALE)
  /// The program has a format that the kernel does not know.
  package static let notExecutable = Errno(rawValue: ENOEXEC)
  package static let busyText = Errno(rawValue: ETXTBSY)
  package static let argumentsTooLong = Errno(rawValue: E2BIG)
  /// No process listens on the port.
  package static let connectionRefused = Errno(rawValue: ECONNREFUSED)
  package static let connectionReset = Errno(rawValue: ECONNRESET)
  package static let connectionAborted = Errno(rawValue: ECONNABORTED)
}

extension Errno: CustomStringConvertible {
  private static let names: [CInt: String] = [
    EPERM: "EPERM", ENOENT: "ENOENT", ESRCH: "ESRCH", EINTR: "EINTR", EIO: "EIO",
    EBADF: "EBADF", ECHILD: "ECHILD", EAGAIN: "EAGAIN", ENOMEM: "ENOMEM", EACCES: "EACCES",
    EBUSY: "EBUSY", EEXIST: "EEXIST", EXDEV: "EXDEV", ENXIO: "ENXIO", ENOTDIR: "ENOTDIR",
    EISDIR: "EISDIR", EINVAL: "EINVAL", ENFILE: "ENFILE", EMFILE: "EMFILE", EFBIG: "EFBIG",
    ENOSPC: "ENOSPC", EROFS: "EROFS", EPIPE: "EPIPE", EDEADLK: "EDEADLK",
    ENAMETOOLONG: "ENAMETOOLONG", ENOSYS: "ENOSYS", ENOTEMPTY: "ENOTEMPTY", ELOOP: "ELOOP",
    EOPNOTSUPP: "EOPNOTSUPP", EDQUOT: "EDQUOT", ETIMEDOUT: "ETIMEDOUT", ECANCELED: "ECANCELED",
    ESTALE: "ESTALE", EMLINK: "EMLINK", EOWNERDEAD: "EOWNERDEAD", ETXTBSY: "ETXTBSY",
    ECONNREFUSED: "ECONNREFUSED", ECONNRESET: "ECONNRESET",
  ]

  /// The name that programmers use for the error, as in `ENOSPC`.
  package var name: String { Self.names[rawValue] ?? "errno \(rawValue)" }

  /// Creates the error with this name, if the table above contains the name.
  package init?(name: some StringProtocol) {
    guard let found = Self.names.first(where: { $0.value == name }) else { return nil }
    rawValue = found.key
  }

  /// The C library's text for the error, beginning with a lower-case letter.
  package var description: String {
    guard let text = strerror(rawValue) else { return name }
    let words = String(cString: text)
    return words.prefix(1).lowercased() + words.dropFirst()
  }
}

/// Runs `body`, and returns nil in place of the error `ignored`.
@discardableResult
package func ignoring<Result: ~Copyable>(
  _ ignored: Errno, _ body: () throws(Errno) -> Result
) throws(Errno) -> Result? {
  do throws(Errno) {
    return try body()
  } catch {
    guard error == ignored else { throw error }
    return nil
  }
}

/// Runs `body`, and returns nil in place of each of the errors `ignored`.
@discardableResult
package func ignoring<Result: ~Copyable>(
  _ ignored: @autoclosure () -> Set<Errno>, _ body: () throws(Errno) -> Result
) throws(Errno) -> Result? {
  do throws(Errno) {
    return try body()
  } catch {
    guard ignored().contains(error) else { throw error }
    return nil
  }
}

@discardableResult
package func ignoring<Result: ~Copyable>(
  _ ignored: Errno, _ body: @autoclosure () throws(Errno) -> Result
) throws(Errno) -> Result? {
  try ignoring(ignored, body)
}
