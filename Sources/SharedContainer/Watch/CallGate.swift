internal import Syscalls

/// The way to a listener's handler, which can be closed for good.
///
/// Once it is closed no call begins, and none is under way but on the thread that closed it: a
/// handler may end its own listening.
package final class CallGate: Sendable {
  package init() {}

  private let state = Monitor((isClosed: false, callingThreads: [UInt]()))

  /// Makes the call, unless the gate is closed; whether it was made.
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

  /// Lets no further call begin.
  package func close() { state.withLock { $0.isClosed = true } }

  /// Waits until the calls under way on other threads have returned.
  package func drain() {
    let here = Thread.currentNumber
    _ = state.wait(until: nil) { state in
      state.callingThreads.allSatisfy { $0 == here } ? true : nil
    }
  }
}
