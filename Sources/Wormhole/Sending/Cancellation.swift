/// The result of the cancellation of a message.
@nonexhaustive
public enum Cancellation: String, Hashable, Sendable {
  /// The message was cancelled: no receiver ever sees it.
  case cancelled
  /// The message is on its way to a member of another machine, which was asked to cancel it: the
  /// outcome states whether that was in time.
  case requested
  /// No such message waits any more: it was claimed or settled before, or it never existed.
  case tooLate

  init(_ isCancelled: Bool) { self = isCancelled ? .cancelled : .tooLate }
}
