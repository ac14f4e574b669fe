internal import WormholeSyscalls

/// The gate to a listener's handler, which can be closed permanently.
///
/// Once the gate is closed, no call starts, and after ``drain()`` no call is in progress but on the
/// thread that closed the gate: a handler may end its own registration.
package final class CallGate: Sendable {
  package init() {}

  private let state = Monitor((isClosed: false, callingThreads: [UInt]()))

  /// Makes the call, unless the gate is closed; returns whether the call was made.
  @discardableResult
  package func call(_ body: () -> Void) -> Bool {
    let here = Thread.currentNumber
    let goes = state.withLock { state in
      if !state.isClosed { state.callingThreads.append(here) }
      return !state.isClosed
    }
    guard goes else { return false }
    body()
    state.signal { state in
      if let index = state.callingThreads.lastIndex(of: here) {
        state.callingThreads.remove(at: index)
      }
    }
    return true
  }

  /// Prevents further calls.
  package func close() { state.withLock { $0.isClosed = true } }

  /// Waits until the calls in progress on other threads have returned.
  package func drain() {
    let here = Thread.currentNumber
    _ = state.wait(until: nil) { state in
      state.callingThreads.allSatisfy { $0 == here } ? true : nil
    }
  }
}
