/// A promise that was not kept.
struct Violation: Equatable, Sendable, CustomStringConvertible {
  /// Which one.
  enum Kind: String, Sendable {
    /// What was acknowledged is not there.
    case lost
    /// A change has been overwritten, or seen out of its turn.
    case order
    /// Something was read that nobody wrote.
    case torn
    /// A message came twice and did not say so, or after it was acknowledged or taken back.
    case twice
    /// A sender was told what is not so.
    case untrue
    /// Somebody had to wait for too long.
    case stuck
    /// A process went down.
    case crash
    /// Something is left that nobody needs.
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
