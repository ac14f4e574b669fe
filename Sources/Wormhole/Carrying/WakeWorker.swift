internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Wakes a member of this machine for programs of other machines, once for all that ask meanwhile.
package final class WakeWorker: Sendable {
  /// Receives nil when the member runs, and otherwise the reason why not.
  package typealias Answer = @Sendable (String?) -> Void

  private let peer: Peer
  private let answers = Monitor<[Answer]>([])
  private let worker = Worker(staysOffWatcher: true)

  /// How long the program may take to join.
  package static let patience = Duration.seconds(30)

  package init(_ carrier: Carrier, _ member: String) {
    peer = carrier.container.peer(member)
    worker.begin { [weak self] in self?.wake() }
  }

  package func wake(_ answer: @escaping Answer) {
    answers.withLock { $0.append(answer) }
    worker.trigger()
  }

  /// Wakes no more; a program that was started continues.
  package func stop() { worker.end() }

  private func wake() {
    let asked = answers.withLock { exchange(&$0, with: []) }
    guard !asked.isEmpty else { return }
    var reason: String?
    do throws(WormholeError) {
      try peer.wake(within: Self.patience)
    } catch {
      reason = error.reason
    }
    for answer in asked { answer(reason) }
  }
}
