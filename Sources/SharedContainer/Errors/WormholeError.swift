package import Syscalls

/// What could not be done, to what, why, and what to do next.
///
/// Match on ``code-swift.property``; the texts are for people and may change.
public struct WormholeError: Error, Hashable, Sendable {
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
