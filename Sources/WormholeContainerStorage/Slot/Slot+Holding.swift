internal import WormholeSyscalls

/// A named lock: held while code runs that changes state outside the container.
///
/// Such code is not fenced: its effects remain, whether or not another process has taken the lock
/// over. So by default no waiter takes over; a waiter's error names the holder.
extension Slot {
  /// The result of holding a lock.
  package struct HoldResult<Result> {
    package let result: Result
    /// Another process took the lock over in the meantime: both may have run at once.
    package let wasSuperseded: Bool
  }

  /// Runs the body under the lock.
  ///
  /// Waits for a suspended holder, until the deadline or a cancellation.
  ///
  /// - Parameters:
  ///   - takeOverAfter: take the lock over from a holder that has not run for that long. No shorter
  ///     than the lease, which is the interval in which a running holder renews its heartbeat.
  ///   - isOutermost: whether the body may change values in the container.
  ///   - body: gets the generation in which the lock is held: it rises with every takeover.
  package func hold<Result>(
    _ operation: String, takeOverAfter: Duration? = nil, patience: Patience = .unlimited,
    isOutermost: Bool = false, _ body: (_ generation: Int) throws -> Result
  ) throws -> HoldResult<Result> {
    let lease = takeOverAfter.map { max($0, container.options.lease) }
    return try locked(operation, LockPolicy(lease: lease, cap: nil), patience) { executor in
      // States since when the lock is held; a failure hides only the age.
      try? executor.staging.descriptor.touch()
      let generation = executor.state.machine.generation
      let result =
        isOutermost
        ? try body(generation)
        : try UpdatesUnderWay.inside(container.identity) { try body(generation) }
      return HoldResult(result: result, wasSuperseded: try executor.isSuperseded())
    }
  }
  /// Runs the body under the lock, with the staging directory that is removed after a takeover.
  ///
  /// Files that the body renames out of the directory take effect only as long as no other process
  /// has taken the lock over: after that, the directory is gone.
  ///
  /// - Parameter forcibly: whether a lock of a suspended holder is taken over, and a missing one
  ///   made.
  func fenced<Result>(
    _ operation: String, _ patience: Patience, forcibly: Bool = true,
    _ body: (_ staging: OpenDirectory) throws(Errno) -> Result?
  ) throws -> Result? {
    var policy = LockPolicy(
      lease: forcibly ? container.options.lease : nil, cap: container.options.cap)
    policy.makesMissing = forcibly
    return try locked(operation, policy, patience) { executor in
      do throws(Errno) {
        return try body(executor.staging)
      } catch {
        guard error == .noSuchFile, executor.staging.isStale else { throw error }
        executor.forgetStaging()
        return nil
      }
    }
  }

  /// Takes the lock, runs the body, and releases the lock.
  private func locked<Result>(
    _ operation: String, _ policy: LockPolicy, _ patience: Patience,
    _ body: (inout LockExecutor) throws -> Result
  ) throws -> Result {
    try holdingTurn(operation, patience) {
      var executor = LockExecutor(self, policy, patience, operation)
      var action = executor.advance(.begin)
      if action == .run, executor.beginAnewIfMoved() { action = executor.advance(.begin) }
      guard action == .run else { throw executor.loss }
      defer { _ = executor.advance(.unchanged) }
      return try body(&executor)
    }
  }
}
