internal import Syscalls

/// A named lock: held while code runs that changes things outside the container.
///
/// Such code is not fenced: what it does to the world counts whether or not others have taken the
/// lock over. So by default nobody does; who waits learns who holds it.
extension Slot {
  /// What a time of holding ended in.
  package struct Held<Result> {
    package let result: Result
    /// Others took the lock over meanwhile: both may have run at once.
    package let wasSuperseded: Bool
  }

  /// Runs the body under the lock.
  ///
  /// A stopped holder is waited for, until patience ends.
  ///
  /// - Parameters:
  ///   - breakAfter: take the lock over from a holder that has not run for that long. No shorter
  ///     than the lease, which is how often running holders show themselves.
  ///   - isOutermost: whether the body may change what lies in the container.
  ///   - body: gets the generation in which the lock is held: it rises with every takeover.
  package func hold<Result>(
    _ operation: String, breakAfter: Duration? = nil, patience: Patience = .unlimited,
    isOutermost: Bool = false, _ body: (_ generation: Int) throws -> Result
  ) throws -> Held<Result> {
    let lease = breakAfter.map { max($0, container.options.lease) }
    return try holdingTurn(operation, patience) {
      var executor = LockExecutor(self, LockPolicy(lease: lease, cap: nil), patience, operation)
      var action = executor.advance(.begin)
      if action == .run, executor.beginAnewIfMoved() { action = executor.advance(.begin) }
      guard action == .run else {
        throw executor.failure
          ?? WormholeError(.system, operation, name, because: "the lock was lost")
      }
      defer { _ = executor.advance(.unchanged) }
      let generation = executor.state.machine.generation
      let result =
        isOutermost
        ? try body(generation)
        : try UpdatesUnderWay.inside(container.identity) { try body(generation) }
      return Held(result: result, wasSuperseded: try executor.isSuperseded())
    }
  }
}
