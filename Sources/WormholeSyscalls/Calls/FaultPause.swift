#if FAULT_POINTS
  /// A place in a thread's calls where the thread waits for the test that has given it the rule.
  ///
  /// A delay is a guess: on a loaded machine it ends before the others have done their part.
  package final class FaultPause: Sendable, Equatable {
    private let state = Monitor((isReached: false, isOpen: false))

    package init() {}

    /// Whether the thread has come to its call.
    package var isReached: Bool { state.withLock { $0.isReached } }

    /// Lets the thread, and every later one, make its call.
    package func open() { state.signal { $0.isOpen = true } }

    func reach() {
      state.signal { $0.isReached = true }
      _ = state.wait(until: .now + .seconds(60)) { $0.isOpen ? true : nil }
    }

    package static func == (left: FaultPause, right: FaultPause) -> Bool { left === right }
  }
#endif
