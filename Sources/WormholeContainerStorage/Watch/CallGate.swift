internal import WormholeSyscalls

/// The gate to a listener's handler, which can be closed permanently.
///
/// Once the gate is closed, no call starts, and after ``drain()`` no call is in progress but on the
/// thread that closed the gate: a handler may end its own registration.
package final class CallGate: Sendable {
  package init() {}

  private struct State {
    var isClosed = false
    /// A thread that makes a call, and the threads of further calls: nearly always there is none.
    var callingThread: UInt?
    var otherThreads: [UInt] = []
  }

  private let state = Monitor(State())

  /// Makes the call, unless the gate is closed; returns whether the call was made.
  @discardableResult
  package func call(_ body: () -> Void) -> Bool {
    let here = Thread.currentNumber
    let goes = state.withLock { state in
      guard !state.isClosed else { return false }
      if state.callingThread == nil {
        state.callingThread = here
      } else {
        state.otherThreads.append(here)
      }
      return true
    }
    guard goes else { return false }
    body()
    state.signal { state in
      if let index = state.otherThreads.lastIndex(of: here) {
        state.otherThreads.remove(at: index)
      } else {
        state.callingThread = nil
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
      let isFree = state.callingThread == nil || state.callingThread == here
      return isFree && state.otherThreads.allSatisfy { $0 == here } ? true : nil
    }
  }
}
