internal import WormholeSyscalls

/// The values with which a closure under test was called.
package final class Heard<Element: Sendable>: Sendable {
  private let monitor = Monitor<[Element]>([])

  package init() {}

  package func add(_ element: Element) { monitor.signal { $0.append(element) } }

  package var all: [Element] { monitor.withLock { $0 } }
  package var count: Int { all.count }

  /// Waits until the received values satisfy the condition.
  package func wait(
    _ what: String, within time: Duration = patience, until condition: ([Element]) -> Bool
  ) throws {
    let met: Void? = monitor.wait(within: time) { condition($0) ? () : nil }
    if met == nil { throw TooLate(description: "\(what): heard \(all.suffix(5))") }
  }
}
