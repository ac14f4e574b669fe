internal import Synchronization

/// A call of a presenter's closure, from its beginning until it has returned and has said that it
/// is done.
///
/// An access inside of it asks nobody: those that are asked at the same time, and save, would wait
/// for each other. A task that was started in it may go on for longer.
final class PresenterCall: Sendable {
  @TaskLocal private static var current: PresenterCall?

  private let isRunning = Atomic<Bool>(true)
  private let isAwaited: Atomic<Bool>

  /// - Parameter isAwaited: whether it says when it is done.
  init(isAwaited: Bool) { self.isAwaited = Atomic(isAwaited) }

  /// Whether the caller is inside of one.
  static var isUnderWay: Bool {
    guard let call = current else { return false }
    return call.isRunning.load(ordering: .acquiring) || call.isAwaited.load(ordering: .acquiring)
  }

  func run(_ body: () -> Void) {
    Self.$current.withValue(self, operation: body)
    isRunning.store(false, ordering: .releasing)
  }

  /// It has said so; whether for the first time.
  func end() -> Bool { isAwaited.exchange(false, ordering: .acquiringAndReleasing) }
}
