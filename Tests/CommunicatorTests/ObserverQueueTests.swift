import Foundation
import TestSupport
import TestTraits
import Testing

@testable import Communicator

/// The queues on which observers are called.
@Suite(.blocking) struct ObserverQueueTests {
  private let heard = Heard<String>()
  private let key = DispatchSpecificKey<String>()

  private func queue(_ name: String) -> DispatchQueue {
    let queue = DispatchQueue(label: name)
    queue.setSpecific(key: key, value: name)
    return queue
  }

  private func observe(_ values: Observations<Int>, on queue: DispatchQueue) -> Observation {
    values.add(queue) { [heard, key] value in
      heard.add("\(DispatchQueue.getSpecific(key: key) ?? "elsewhere") \(value)")
    }
  }

  /// A busy queue delays its own observer alone.
  @Test func eachObserverIsCalledOnItsOwnQueue() {
    let values = Observations<Int>()
    let (busy, free) = (queue("busy"), queue("free"))
    values.tell(1)
    busy.suspend()
    let first = observe(values, on: busy)
    let second = observe(values, on: free)
    values.tell(2)
    free.sync {}
    #expect(heard.all == ["free 2"])
    busy.resume()
    busy.sync {}
    #expect(heard.all == ["free 2", "busy 1", "busy 2"])
    for observation in [first, second] { values.remove(observation) }
    #expect(values.isEmpty)
  }
}
