import Wormhole
import WormholeSyscalls
import WormholeTesting

/// What handlers were called with.
final class Heard<Element: Sendable>: Sendable {
  private let heard = Monitor<[Element]>([])

  func add(_ element: Element) { heard.withLock { $0.append(element) } }

  var all: [Element] { heard.withLock { $0 } }
  var count: Int { all.count }
}

extension Heard where Element: Equatable {
  /// Waits until exactly these elements were received.
  func comes(_ elements: [Element]) async throws {
    do {
      try await eventually("\(elements)") { count >= elements.count }
    } catch {
      throw Unheard(description: "\(elements) was not heard, but \(all)")
    }
    guard all == elements else {
      throw Unheard(description: "\(elements) was not heard, but \(all)")
    }
  }
}

struct Unheard: Error, CustomStringConvertible { let description: String }

/// What a handler throws.
struct Refusal: Error {}
