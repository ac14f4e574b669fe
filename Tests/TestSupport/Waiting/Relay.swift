internal import WormholeSyscalls

/// Handles on the test's own thread the values that a callback receives on another thread.
///
/// Swift Testing finds the test of an expectation by the current task. A callback on a queue has no
/// task, so an expectation that fails in the callback belongs to no test.
package final class Relay<Element: Sendable>: Sendable {
  private struct State {
    var waiting: [(number: Int, element: Element)] = []
    var results: [Int: Result<Void, any Error>] = [:]
    var count = 0
    var isClosed = false
  }

  private let state = Monitor(State())

  package init() {}

  /// Hands an element to the test, and waits until the test has handled it; throws what it threw.
  package func pass(_ element: Element) throws {
    let number = state.signal { state in
      state.count += 1
      state.waiting.append((state.count, element))
      return state.count
    }
    let result = state.wait(until: nil) { state in
      state.results.removeValue(forKey: number) ?? (state.isClosed ? .failure(Missing()) : nil)
    }
    try result?.get()
  }

  /// Handles elements on this thread until the body has handled an element without an error.
  ///
  /// Afterwards, elements are refused.
  package func handle(
    _ what: String, within time: Duration = patience, _ body: (Element) throws -> Void
  ) throws {
    defer { state.signal { $0.isClosed = true } }
    while true {
      let next = state.wait(within: time) { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
      guard let (number, element) = next else {
        throw TooLate(description: "\(what): not within \(time)")
      }
      let result = Result { try body(element) }
      state.signal { $0.results[number] = result }
      if case .success = result { return }
    }
  }
}
