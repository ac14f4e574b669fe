internal import WormholeSyscalls

/// The number of notices, on which one caller waits for a change.
final class NoticeCount: Sendable {
  /// How many notices have come, and how many of them the caller knows.
  private let state = Monitor((count: 0, known: 0))

  /// How often a waiting call of a task looks whether the task was cancelled: a wait for a name may
  /// last for days.
  private static let tick = Duration.milliseconds(100)

  func add() { state.signal { $0.count += 1 } }

  /// Waits for a notice since the last call that returned true.
  ///
  /// - Returns: false at the given moment, or if the task of the caller was cancelled.
  @discardableResult
  func wait(until end: Instant) -> Bool {
    repeat {
      let look = OffPool.cancellation == nil ? end : min(end, .now + Self.tick)
      let isNew = state.wait(until: look) { state -> Bool? in
        guard state.count > state.known else { return nil }
        state.known = state.count
        return true
      }
      if isNew == true { return true }
    } while Instant.now < end && !OffPool.isCancelled
    return false
  }
}
