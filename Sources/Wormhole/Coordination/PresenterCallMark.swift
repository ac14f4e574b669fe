internal import Synchronization

/// A call of a presenter's closure, from its start until the closure has returned and has reported
/// its completion.
///
/// An access inside the call asks no presenter: presenters that are asked at the same time and save
/// would wait for each other. A task started in the call may outlive it.
final class PresenterCallMark: Sendable {
  @TaskLocal private static var current: PresenterCallMark?

  private let isRunning = Atomic<Bool>(true)
  private let isAwaited: Atomic<Bool>

  /// - Parameter isAwaited: whether the closure reports its completion.
  init(isAwaited: Bool) { self.isAwaited = Atomic(isAwaited) }

  /// Whether the caller is inside a presenter's closure.
  static var isUnderWay: Bool {
    guard let call = current else { return false }
    return call.isRunning.load(ordering: .acquiring) || call.isAwaited.load(ordering: .acquiring)
  }

  func run(_ body: () -> Void) {
    Self.$current.withValue(self, operation: body)
    isRunning.store(false, ordering: .releasing)
  }

  /// Records that the closure has reported its completion; returns whether for the first time.
  func end() -> Bool { isAwaited.exchange(false, ordering: .acquiringAndReleasing) }
}
