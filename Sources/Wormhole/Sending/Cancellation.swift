/// The result of the cancellation of a message.
@nonexhaustive
public enum Cancellation: String, Hashable, Sendable {
  /// The message was cancelled: no receiver ever sees it.
  case cancelled
  /// No such message waits any more: it was claimed or settled before, or it never existed.
  case tooLate

  init(_ isCancelled: Bool) { self = isCancelled ? .cancelled : .tooLate }
}
