internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The end of a worker because the home of its queue has moved; see ``FollowingWorker``.
extension QueueWorker {
  var hasMoved: Bool { state.withLock { $0.hasMoved } }

  func lookForHome(after pause: Duration) {
    later(pause) { [weak self] in self?.followHome() }
  }

  /// Stops if the home of the queue has become another machine, or this one.
  func followHome() {
    do throws(Errno) {
      guard try (named.elsewhere != nil) != queue.isAway, !Mutants.has(.stayInPlace) else { return }
    } catch {
      return lookForHome(after: .seconds(1))
    }
    state.withLock { $0.hasMoved = $0.hasMoved || !$0.isStopped }
    stop()
  }
}
