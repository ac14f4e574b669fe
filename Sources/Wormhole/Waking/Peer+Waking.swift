public import SharedContainer
internal import Syscalls

/// Starting a member that does not run.
extension Wormhole.Peer {
  /// Sees to it that the peer runs, and waits until it has joined, on the thread that calls.
  ///
  /// If it runs it returns at once. Otherwise its program is started, as
  /// `Wormhole.registerStart(of:program:arguments:environment:directory:)` was told,
  /// once however many ask for it at the same time. The program has a session of its own, nothing
  /// on its standard descriptors, inherits no other, and no lock; it finds the container in
  /// `WORMHOLE_CONTAINER`, and goes on when this process ends.
  ///
  /// It throws ``WormholeError/Code-swift.struct/notFound`` if nobody has said how it is started,
  /// ``WormholeError/Code-swift.struct/refused`` if somebody else may have said it,
  /// ``WormholeError/Code-swift.struct/unreachable`` as soon as the program has ended without
  /// having joined, and ``WormholeError/Code-swift.struct/timedOut`` if it runs and does not join.
  ///
  /// - Parameter timeout: how long to wait for it.
  public func wake(within timeout: Duration = .seconds(10)) throws(WormholeError) {
    try Waking(self, timeout).run()
  }

  /// Sees to it that the peer runs, and waits until it has joined.
  ///
  /// As the one without `await`; a task that is cancelled waits no longer, and what was started
  /// goes on.
  public func wake(within timeout: Duration = .seconds(10)) async throws(WormholeError) {
    let waking = try Waking(self, timeout)
    if waking.isPresent { return }
    let name = name
    // It waits for locks and processes, which no thread of the pool may.
    let end: Result<Void, WormholeError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        do throws(Errno) {
          try Thread("waking") {
            let end = Result { () throws(WormholeError) in try waking.run() }
            continuation.resume(returning: end)
          }.detach()
        } catch {
          continuation.resume(returning: .failure(WormholeError(error, "wake", name)))
        }
      }
    } onCancel: {
      waking.cancel()
    }
    try end.get()
  }
}
