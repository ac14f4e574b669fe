import TestTraits
import Testing

@testable import Wormhole

/// Sorted queues of so many elements that the taken ones are removed from memory.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct SortedQueueTests {
  private func takeAll(_ queue: inout SortedQueue<Int>) -> [Int] {
    var taken: [Int] = []
    while !queue.isEmpty { taken.append(queue.removeFirst()) }
    return taken
  }

  @Test func eachElementIsTakenOnce() {
    var queue = SortedQueue(Array(0..<3000))
    let taken = takeAll(&queue)
    #expect(taken == Array(0..<3000))
    #expect(queue.first == nil && queue.count == 0)
  }

  @Test func eachElementOfAGrowingQueueIsTakenOnce() {
    var queue = SortedQueue<Int>()
    var taken: [Int] = []
    for round in 0..<10 {
      for number in 0..<600 { queue.insert(600 * round + number, comesBefore: <) }
      for _ in 0..<500 { taken.append(queue.removeFirst()) }
    }
    #expect(queue.count == 1000)
    #expect(queue.first == 5000)
    // The first new element becomes the first of all, and the second comes into the middle.
    queue.insert(-1, comesBefore: <)
    queue.insert(5500, comesBefore: <)
    #expect(taken == Array(0..<5000))
    let rest = takeAll(&queue)
    #expect(rest == [-1] + Array(5000...5500) + Array(5500..<6000))
  }

  @Test func whatIsRemovedFromTheMiddleIsNotTaken() {
    var queue = SortedQueue(Array(0..<3000))
    for _ in 0..<2000 { _ = queue.removeFirst() }
    queue.removeAll { $0 % 2 == 0 }
    #expect(queue.count == 500)
    let rest = takeAll(&queue)
    #expect(rest == Array(stride(from: 2001, to: 3000, by: 2)))
  }
}
