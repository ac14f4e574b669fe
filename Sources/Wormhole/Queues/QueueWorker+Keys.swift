internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The order of the messages with an ordering key.
extension QueueWorker {
  /// How often a worker looks again at a key that another worker uses.
  private static let keyPeriod: Int64 = 20_000_000

  /// Whether another message of the key is in use: then this one waits.
  func mustWait(_ candidate: KeyedMessages.Candidate) -> Bool {
    guard let key = candidate.name.key, !Mutants.has(.claimAnyKey) else { return false }
    do throws(Errno) {
      guard try keys.isInUse(key) else { return false }
      state.withLock {
        $0.machine.found(key, inUseFor: candidate, until: now + Self.keyPeriod)
      }
    } catch {
      pause(after: error, candidate.name)
    }
    return true
  }

  /// Returns a claimed message unless it is the first of its key; returns whether it is.
  func isFirstOfKey(_ claimed: ClaimedName) throws(WormholeError) -> Bool {
    guard let key = claimed.name.key else { return true }
    let isFirst = try naming("claim message", claimed.name.id, at: queue) { () throws(Errno) in
      Mutants.has(.trustClaim) ? true : try keys.isFirst(claimed)
    }
    let next = now + Self.keyPeriod
    state.withLock {
      isFirst ? $0.machine.took(key, claimed) : $0.machine.found(key, inUseFor: nil, until: next)
    }
    guard !isFirst else { return true }
    // After an error the claim is held already, or is another worker's.
    reporting(to: { log(.error, $0, claimed.name) }) { () throws(WormholeError) in
      try requeue(claimed, .undone, after: .zero)
    }
    return false
  }
}
