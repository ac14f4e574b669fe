package import Dispatch
internal import Synchronization
internal import Syscalls

/// One more look at what could not be looked at, in a second: nothing that comes tells that it can
/// be now.
///
/// However often that was found meanwhile, it is one.
package final class LaterLook: Sendable {
  private let isPlanned = Atomic<Bool>(false)

  package init() {}

  package func plan(on queue: DispatchQueue, _ look: @escaping @Sendable () -> Void) {
    guard !isPlanned.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.soon(after: .seconds(1)) { [weak self] in
      self?.isPlanned.store(false, ordering: .releasing)
      look()
    }
  }
}
