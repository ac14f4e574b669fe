/// A broken promise.
struct Violation: Equatable, Sendable, CustomStringConvertible {
  /// The kind of a broken promise.
  enum Kind: String, Sendable {
    /// An acknowledged change or message is missing.
    case lost
    /// A change was overwritten, or seen out of order.
    case order
    /// A reader found content that no process wrote.
    case torn
    /// A message arrived twice without being marked as redelivered, or after its acknowledgement or
    /// cancellation.
    case twice
    /// A sender received a false outcome.
    case untrue
    /// A process had to wait for too long.
    case stuck
    /// A process crashed.
    case crash
    /// A remaining file or resource that no process needs.
    case leak
  }

  let kind: Kind
  let what: String

  init(_ kind: Kind, _ what: String) {
    self.kind = kind
    self.what = what
  }

  var description: String { "\(kind.rawValue): \(what)" }
}
