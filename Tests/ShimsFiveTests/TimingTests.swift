import Combine
import Foundation
import TestSupport
import TestTraits
import Testing

/// Queues, run loops and time in the shim of Combine.
@Suite struct TimingTests {
  @Test(.blocking) func valuesArriveOnTheQueueInOrder() throws {
    let subject = PassthroughSubject<Int, Never>()
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "values")
    queue.setSpecific(key: key, value: true)
    let (heard, places, ends) = (Heard<Int>(), Heard<Bool>(), Heard<Int>())
    let kept = subject.receive(on: queue).sink(
      receiveCompletion: { _ in ends.add(heard.count) },
      receiveValue: {
        heard.add($0)
        places.add(DispatchQueue.getSpecific(key: key) == true)
      })
    for value in 1...100 { subject.send(value) }
    subject.send(completion: .finished)
    try ends.wait("the completion") { $0 == [100] }
    #expect(heard.all == Array(1...100))
    #expect(places.all.allSatisfy { $0 })
    kept.cancel()
  }

  @Test(.blocking) func whatWaitsWhenItIsCancelledIsNotDelivered() {
    let subject = PassthroughSubject<Int, Never>()
    let queue = DispatchQueue(label: "values")
    let heard = Heard<Int>()
    let kept = subject.receive(on: queue).sink { heard.add($0) }
    queue.suspend()
    subject.send(1)
    kept.cancel()
    queue.resume()
    queue.sync {}
    #expect(heard.all == [])
  }

  @Test(.blocking) func operationQueuesAndTheMainRunLoopDeliver() throws {
    let subject = PassthroughSubject<Int, Never>()
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
    let (operations, main, here) = (Heard<Int>(), Heard<Int>(), Heard<Bool>())
    let kept = [
      subject.receive(on: queue).sink { operations.add($0) },
      subject.receive(on: OperationQueue.main).sink { _ in here.add(Thread.isMainThread) },
      subject.receive(on: RunLoop.main).sink { main.add($0) },
    ]
    for value in 1...100 { subject.send(value) }
    try operations.wait("all by operations") { $0.count == 100 }
    try main.wait("all by the run loop") { $0.count == 100 }
    try here.wait("all by the main queue") { $0.count == 100 }
    #expect(operations.all == Array(1...100))
    #expect(main.all == Array(1...100))
    _ = kept
  }

  /// The values are sent on the queue itself: also on a busy machine, no pause ends in between.
  @Test(.blocking) func aPauseDeliversTheLatestValue() throws {
    let subject = PassthroughSubject<Int, Never>()
    let queue = DispatchQueue(label: "debounce")
    let (heard, ends) = (Heard<Int>(), Heard<Int>())
    let kept = subject.debounce(for: .seconds(1), scheduler: queue).sink(
      receiveCompletion: { _ in ends.add(heard.count) }, receiveValue: { heard.add($0) })
    queue.sync { for value in 1...20 { subject.send(value) } }
    try heard.wait("the latest") { !$0.isEmpty }
    #expect(heard.all == [20])
    subject.send(21)
    try heard.wait("the next") { $0.count == 2 }
    queue.sync {
      subject.send(22)
      subject.send(completion: .finished)
    }
    try ends.wait("the completion") { !$0.isEmpty }
    #expect(heard.all == [20, 21], "a completion drops the value that waits")
    kept.cancel()
  }

  /// As above, on the main queue.
  @Test(.blocking) func aThrottleDeliversOneOfSeveral() throws {
    for isLatest in [true, false] {
      let subject = PassthroughSubject<Int, Never>()
      let heard = Heard<Int>()
      let kept = subject.throttle(for: 1, scheduler: DispatchQueue.main, latest: isLatest)
        .sink { heard.add($0) }
      DispatchQueue.main.sync { for value in 1...20 { subject.send(value) } }
      try heard.wait("two values") { $0.count == 2 }
      #expect(heard.all == [1, isLatest ? 20 : 2])
      kept.cancel()
    }
  }

  @Test(.blocking) func aDelayKeepsTheOrder() throws {
    let (heard, start) = (Heard<Date>(), Date())
    let kept = Just(1).delay(for: .seconds(0.03), scheduler: OperationQueue.main).sink { _ in
      heard.add(Date())
    }
    try heard.wait("the value") { $0.count == 1 }
    #expect(heard.all[0].timeIntervalSince(start) >= 0.03)
    kept.cancel()
  }

  @Test(.blocking) func aTimerPublishesUntilItIsCancelled() throws {
    let heard = Heard<Date>()
    let kept = Timer.publish(every: 0.01, on: .main, in: .common).autoconnect()
      .sink { heard.add($0) }
    try heard.wait("three times") { $0.count >= 3 }
    kept.cancel()
  }
}
