internal import WormholeContainerStorage

/// Stops an activity when the last reference is released.
final class StopOnRelease<One: Stoppable>: Sendable {
  let one: One

  init(_ one: One) { self.one = one }

  deinit { stop() }

  func stop() { one.stop() }
}

extension Optional {
  /// Returns the result of a start; throws the error of a failed start once, and is nil afterwards.
  mutating func getFailingOnce<Success>() throws(WormholeError) -> Success?
  where Wrapped == Result<Success, WormholeError> {
    switch self {
    case .success(let success)?: return success
    case .failure(let error)?:
      self = nil
      throw error
    case nil: return nil
    }
  }
}
