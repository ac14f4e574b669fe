import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// The queue of a process's threads before a lock.
@Suite(.blocking) struct ThreadQueueTests {
  private let queue = ThreadQueue()
  private let heard = Heard<Int>()

  /// A thread that takes its turn, and gives it back.
  private func waiter(_ number: Int, _ patience: Patience = .unlimited) throws -> Thread {
    let before = queue.waitingCount
    let thread = try Thread("waiter") { [queue, heard] in
      guard queue.take(patience) else { return heard.add(-number) }
      heard.add(number)
      queue.giveBack()
    }
    try eventually("\(number) waits") { queue.waitingCount == before + 1 }
    return thread
  }

  @Test func turnsComeInTheOrderOfArrival() throws {
    #expect(queue.tryTake())
    let threads = try (1...20).map { try waiter($0) }
    #expect(!queue.tryTake() && heard.all == [])
    queue.giveBack()
    for thread in threads { thread.join() }
    #expect(heard.all == Array(1...20))
    #expect(queue.tryTake())
  }

  @Test func whoeverGivesUpIsPassedOver() throws {
    #expect(queue.tryTake())
    let flag = CancellationFlag()
    var cancellable = Patience.unlimited
    cancellable.cancellation = flag
    let threads = try [waiter(1), waiter(2, cancellable), waiter(3, cancellable), waiter(4)]
    flag.cancel()
    try eventually("two have given up") { queue.waitingCount == 2 }
    // A thread leaves the queue before it says so.
    try heard.wait("both have said so") { $0.count == 2 }
    queue.giveBack()
    for thread in threads { thread.join() }
    #expect(Set(heard.all.prefix(2)) == [-2, -3] && heard.all.suffix(2) == [1, 4])
    #expect(queue.tryTake())
  }

  /// Whether a thread gives up or gets its turn at that moment, the turn is not lost.
  @Test func noTurnIsLostAtADeadline() throws {
    for round in 1...200 {
      #expect(queue.tryTake(), "round \(round)")
      let late = try Thread("late") { [queue] in
        if queue.take(Patience(within: .microseconds(300))) { queue.giveBack() }
      }
      let _: Void? = Monitor(()).wait(until: .now + .microseconds(200 + round)) { _ in nil }
      queue.giveBack()
      late.join()
    }
    #expect(queue.tryTake())
  }
}
