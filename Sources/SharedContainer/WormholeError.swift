package import Syscalls

/// What could not be done, to what, why, and what to do next.
///
/// Match on ``code-swift.property``; the texts are for people and may change.
public struct WormholeError: Error, Hashable, Sendable {
  /// What kind of failure it is.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// There is nothing of that name.
    case notFound
    /// The directory is no container, and will not be made one.
    case notAContainer
    /// The container's format is later than this program knows.
    case laterFormat
    /// Owner, permissions or type of a file make it unsafe to use.
    case refused
    /// The system does not let this user do it.
    case permissionDenied
    /// The file system can only be read.
    case readOnly
    /// A name that cannot be used: empty, or too long once escaped.
    case invalidName
    /// A value that cannot be written as a property list.
    case invalidValue
    /// More bytes than the limit allows.
    case tooLarge
    /// The value is there and sound, but not of the type that was asked for.
    case typeMismatch
    /// The file is damaged, and no earlier value is kept.
    case damaged
    /// The disk, the quota, or a queue is full. Nothing was changed.
    case full
    /// The process or the system has run out of descriptors, watches or memory.
    case exhausted
    /// The value changed meanwhile, or exists already. Read it and try again.
    case conflict
    /// Others took the lock over, because this process took too long. Nothing was changed.
    case superseded
    /// A living process has joined under this name.
    case nameTaken
    /// The member has left, or what it had was taken from it.
    case notJoined
    /// A lock of this container was asked for inside an update of this container.
    case nested
    /// The deadline passed. Nothing was changed.
    case timedOut
    /// The caller cancelled it. Nothing was changed.
    case cancelled
    /// A message did not arrive: the receiver has given it up.
    case undelivered
    /// The peer does not run, or has ended or left before it answered.
    case unreachable
    /// The peer does not answer that, or says that it cannot.
    case rejected
    /// It was done and everybody sees it, but a power cut may undo it.
    case notDurable
    /// Of several changes in one call, some were made and some not; the reason says which.
    case partlyDone
    /// The system reported an error that says nothing more about what to do.
    case system
  }

  /// What kind of failure it is.
  public var code: Code
  /// What was to be done, as in "read channel".
  public var operation: String
  /// What it was to be done to: a name or a path.
  public var subject: String
  /// Why it was not possible.
  public var reason: String
  /// What might be done about it, where something is known.
  public var hint: String?
  /// The system's error number, where one was the cause.
  public var errno: Int32?

  package init(
    _ code: Code, _ operation: String, _ subject: String, because reason: String,
    hint: String? = nil, errno: Errno? = nil
  ) {
    self.code = code
    self.operation = operation
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.errno = errno?.rawValue
  }
}

extension WormholeError: CustomStringConvertible {
  /// One sentence, without a full stop: `cannot read channel 'speed': permission denied`.
  public var description: String {
    let sentence = "cannot \(operation) '\(subject)': \(reason)"
    return hint.map { sentence + "; " + $0 } ?? sentence
  }
}
