/// Why a bridge ends by itself.
package struct BridgeEnd: Error, Equatable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// No server was there in time.
    case unavailable
    /// Another bridge continues with the machine's identity.
    case fenced
    /// The servers refuse the token or a right.
    case noRights
    /// This container, or the servers, must be looked after first.
    case refused
  }

  package let kind: Kind
  package let reason: String
  /// What to do next.
  package let hint: String?

  package init(_ kind: Kind, _ reason: String, hint: String? = nil) {
    (self.kind, self.reason, self.hint) = (kind, reason, hint)
  }

  package var description: String { hint.map { "\(reason); \($0)" } ?? reason }
}
