/// Whether accesses wait for each other in a cycle.
///
/// A waiting access waits for all conflicting, earlier accesses. A running access waits for the
/// blockers of its inner accesses. A process that starts an access inside another arrives first and
/// checks for a cycle afterwards, so the last access of a cycle sees the whole cycle.
package struct WaitCycle {
  /// One access with its state in a listing.
  package struct Seen: Sendable {
    let token: AccessToken
    let stamp: UInt64
    let isWaiting: Bool
    let claim: AccessClaim
    let held: [AccessToken]

    package init(
      _ container: String, _ name: String, stamp: UInt64, isWaiting: Bool, _ claim: AccessClaim,
      held: [(container: String, name: String)] = []
    ) {
      token = AccessToken(container: container, name: name)
      self.stamp = stamp
      self.isWaiting = isWaiting
      self.claim = claim
      self.held = held.map { AccessToken(container: $0.container, name: $0.name) }
    }

    init(_ token: AccessToken, _ name: AccessName, _ place: AccessPlace, _ entry: AccessEntry) {
      self.token = token
      stamp = name.stamp
      isWaiting = place == .waiting
      claim = entry.claim
      held = entry.held
    }
  }

  private let all: [Seen]

  package init(_ all: [Seen]) { self.all = all }

  /// Whether a blocker of the access waits, directly or not, for an enclosing access.
  package func closes(at container: String, _ name: String) -> Bool {
    closes(at: AccessToken(container: container, name: name))
  }

  func closes(at token: AccessToken) -> Bool {
    guard let own = all.first(where: { $0.token == token }) else { return false }
    var seen: Set<AccessToken> = [token]
    var open = [own]
    while let next = open.popLast() {
      for other in waits(of: next) {
        if own.held.contains(other.token) { return true }
        if seen.insert(other.token).inserted { open.append(other) }
      }
    }
    return false
  }

  private func waits(of one: Seen) -> [Seen] {
    guard one.isWaiting else { return all.filter { $0.isWaiting && $0.held.contains(one.token) } }
    return all.filter { other in
      other.token.container == one.token.container && other.token != one.token
        && (!other.isWaiting || other.stamp < one.stamp) && other.claim.conflicts(with: one.claim)
    }
  }
}
