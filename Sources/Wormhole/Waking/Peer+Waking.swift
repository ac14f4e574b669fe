public import WormholeContainerStorage
internal import WormholeSyscalls

/// Starting a member that does not run.
extension Peer {
  /// Starts the peer if it does not run, and waits on the calling thread until the peer has joined.
  ///
  /// If the peer runs, the call returns at once. Otherwise the program given to
  /// `SharedContainer.registerLaunch(of:program:arguments:environment:directory:)` is started,
  /// once, even if several processes wake the peer at the same time. The program has a session of
  /// its own and nothing on its standard descriptors. The program inherits no more descriptors, and
  /// no lock; it finds the container in `WORMHOLE_CONTAINER`, and continues after the end of the
  /// calling process.
  ///
  /// It throws ``WormholeError/Code-swift.struct/notFound`` if no program is registered,
  /// ``WormholeError/Code-swift.struct/refused`` if another user may have registered it,
  /// ``WormholeError/Code-swift.struct/unreachable`` as soon as the program has ended without
  /// having joined, and ``WormholeError/Code-swift.struct/timedOut`` if the program runs and does
  /// not join.
  ///
  /// - Parameter timeout: the time limit for the peer to join.
  public func wake(within timeout: Duration = .seconds(10)) throws(WormholeError) {
    try WakeCall(self, timeout).run()
  }

  /// Starts the peer if it does not run, and waits until the peer has joined.
  ///
  /// As the overload without `await`. If the task is cancelled, the wait ends, and a started
  /// program continues.
  public func wake(within timeout: Duration = .seconds(10)) async throws(WormholeError) {
    try TaskPool.start("wake", name)
    let waking = try WakeCall(self, timeout)
    if waking.isPresent { return }
    let name = name
    // Waking waits for locks and processes, which no thread of the pool may.
    let end: Result<Void, WormholeError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        do throws(Errno) {
          try Thread("wormhole-wake") {
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
