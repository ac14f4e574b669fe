import WormholeSyscalls

/// A number that two processes send to each other and increase, up to the end of a rally.
final class Rally: Sendable {
  private struct State {
    var number = 0
    /// The number that ends the rally.
    var last = 0
  }

  private let state = Monitor(State())

  /// Takes a number from the other process; returns the next number, nil at the end of the rally.
  func next(after number: Int) -> Int? {
    guard state.withLock({ $0.last <= number }) else { return number + 1 }
    state.signal { $0.number = number }
    return nil
  }

  /// Sends the first number of a rally; returns whether the last number arrives in time.
  func isAnswered(
    _ rally: Int, within time: Duration, _ send: (Int) throws -> Void
  ) rethrows -> Bool {
    let (first, last) = state.withLock { state in
      let first = state.last + 1
      state.last += rally
      return (first, state.last)
    }
    try send(first)
    return state.wait(until: .now + time) { $0.number >= last ? true : nil } ?? false
  }
}
