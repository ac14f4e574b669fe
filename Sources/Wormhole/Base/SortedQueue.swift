/// A sorted queue: elements are taken from the front, and new elements mostly go to the end.
struct SortedQueue<Element> {
  private var elements: [Element]
  /// The index of the first element that is not taken.
  private var start = 0

  /// - Parameter elements: in order.
  init(_ elements: [Element] = []) { self.elements = elements }

  var first: Element? { start < elements.count ? elements[start] : nil }
  var count: Int { elements.count - start }
  var isEmpty: Bool { count == 0 }

  mutating func removeFirst() -> Element {
    let taken = elements[start]
    start += 1
    if start == elements.count {
      elements = []
      start = 0
    } else if start >= 1024, start > elements.count / 2 {
      // The cost, spread over all elements that are taken, is next to nothing.
      elements.removeFirst(start)
      start = 0
    }
    return taken
  }

  mutating func removeAll(where condition: (Element) -> Bool) {
    elements = elements[start...].filter { !condition($0) }
    start = 0
  }

  /// Inserts an element in order, behind all elements equal to it.
  mutating func insert(_ element: Element, comesBefore: (Element, Element) -> Bool) {
    var (low, high) = (start, elements.count)
    if let last = elements.last, !comesBefore(element, last) { low = high }
    while low < high {
      let middle = low + (high - low) / 2
      if comesBefore(element, elements[middle]) { high = middle } else { low = middle + 1 }
    }
    elements.insert(element, at: low)
  }
}

extension SortedQueue: Equatable where Element: Equatable {}
extension SortedQueue: Hashable where Element: Hashable {}

extension Dictionary {
  /// Takes the first element of the key's queue, which must exist; removes an empty queue.
  mutating func takeFirst<Element>(of key: Key) -> Element where Value == SortedQueue<Element> {
    let index = self.index(forKey: key)!
    let taken = values[index].removeFirst()
    if values[index].isEmpty { remove(at: index) }
    return taken
  }
}
