package import Dispatch
internal import Wormhole

extension DispatchQueue {
  /// Repeats an attempt until it succeeds, at growing intervals of a minute at most.
  ///
  /// For attempts that may succeed again without a notice, such as one to watch the next container.
  ///
  /// - Parameter attempt: returns true if it has succeeded, or if it is no longer wanted.
  package func retry(
    after pause: Duration = .seconds(1), _ attempt: @escaping @Sendable () -> Bool
  ) {
    soon(after: pause) {
      if !attempt() { self.retry(after: min(pause * 2, .seconds(60)), attempt) }
    }
  }
}
