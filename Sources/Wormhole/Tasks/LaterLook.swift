internal import Synchronization
internal import WormholeSyscalls

/// Another check in a second, after a check that failed: no notice reports that the check can
/// succeed now.
///
/// Several failures within the second lead to one check.
package final class LaterLook: Sendable {
  private let isPlanned = Atomic<Bool>(false)

  package init() {}

  package func plan(on queue: any CallQueue, _ look: @escaping @Sendable () -> Void) {
    guard !isPlanned.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.soon(after: .seconds(1)) { [weak self] in
      self?.isPlanned.store(false, ordering: .releasing)
      look()
    }
  }
}
