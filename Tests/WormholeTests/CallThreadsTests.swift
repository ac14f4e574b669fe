import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import Wormhole

/// The library's own threads and queues, used in place of Dispatch's.
@Suite(.blocking) struct CallThreadsTests {
  private typealias Heard = TestSupport.Heard

  @Test func laterCallsAreMadeInTheOrderOfTheirMoments() throws {
    let (threads, gate, heard) = (CallThreads(most: 1), Gate(), Heard<Int>())
    // The only thread is busy until all calls are known.
    threads.add { gate.pass() }
    try gate.waitForSomebody()
    let now = Instant.now
    for number in [5, 1, 4, 2, 3, 2] {
      threads.add(at: now + .milliseconds(10 * number)) {
        heard.add(number)
        #expect(Instant.now >= now + .milliseconds(10 * number))
      }
    }
    gate.open()
    try heard.wait("all") { $0.count == 6 }
    #expect(heard.all == [1, 2, 2, 3, 4, 5])
  }

  @Test func aCallThatIsCancelledIsNeitherMadeNorKept() throws {
    let (threads, gate, heard) = (CallThreads(most: 1), Gate(), Heard<Int>())
    // The only thread is busy until the call is cancelled, however late that is.
    threads.add { gate.pass() }
    try gate.waitForSomebody()
    let moment = Instant.now + .milliseconds(50)
    weak var kept: Heard<Int>?
    let ticket = {
      let burden = Heard<Int>()
      kept = burden
      return threads.add(at: moment) { burden.add(1) }
    }()
    threads.add(at: moment) { heard.add(2) }
    threads.cancel(ticket)
    #expect(kept == nil)
    gate.open()
    try heard.waitForLast(2)
    threads.cancel(ticket)
  }

  /// A long call does not delay the calls whose moments arrive during it.
  @Test func aBusyThreadDelaysNoLaterCall() throws {
    let (threads, gate, heard) = (CallThreads(most: 2), Gate(), Heard<Int>())
    threads.add(at: .now + .milliseconds(20)) { heard.add(1) }
    threads.add { gate.pass() }
    try gate.waitForSomebody()
    try heard.waitForLast(1)
    gate.open()
  }

  /// If no second thread can be started, the first thread makes the later call when it is free.
  @Test func withoutAnotherThreadALaterCallIsMadeLate() throws {
    let count = Monitor(0)
    let threads = CallThreads(most: 8) { body throws(Errno) in
      let isFirst = count.withLock { count in
        count += 1
        return count == 1
      }
      guard isFirst else { throw .wouldBlock }
      try Thread("only", body).detach()
    }
    let (gate, heard) = (Gate(), Heard<Int>())
    threads.add { gate.pass() }
    try gate.waitForSomebody()
    threads.add(at: .now) { heard.add(1) }
    threads.add { heard.add(2) }
    #expect(heard.count == 0)
    gate.open()
    try heard.wait("both") { $0.count == 2 }
    #expect(heard.all == [1, 2])
  }

  @Test func whatNeedsAThreadFailsWhereNoneCanBeHad() throws {
    let threads = CallThreads(most: 8) { _ throws(Errno) in throw .wouldBlock }
    #expect(throws: Errno.wouldBlock) { _ = try threads.hold() }
  }

  /// A held thread remains, idle or not: no thread has to be started when a call needs one.
  @Test func aThreadThatIsHeldStays() throws {
    let (hires, ends) = (Monitor(0), Heard<Int>())
    let threads = CallThreads(most: 2) { body throws(Errno) in
      let number = hires.withLock { hires in
        hires += 1
        return hires
      }
      guard number <= 2 else { throw .wouldBlock }
      try Thread("held") {
        body()
        ends.add(number)
      }.detach()
    }
    let hold = try threads.hold()
    let (first, second, heard) = (Gate(), Gate(), Heard<Bool>())
    threads.add { first.pass() }
    threads.add { second.pass() }
    try first.waitForSomebody()
    try second.waitForSomebody()
    first.open()
    second.open()
    // When the first thread has ended, the other has been idle for as long.
    try ends.wait("one has rested enough") { $0.count == 1 }
    threads.add { heard.add(CallThreads.isBorrowed) }
    try heard.wait("a call") { $0.count == 1 }
    #expect(heard.all == [false])
    #expect(ends.count == 1 && hires.withLock { $0 } == 2)
    withExtendedLifetime(hold) {}
  }

  @Test func aThreadThatNobodyHoldsEnds() throws {
    let ends = Heard<Int>()
    let threads = CallThreads(most: 2) { body throws(Errno) in
      try Thread("held") {
        body()
        ends.add(1)
      }.detach()
    }
    var hold: ThreadHold? = try threads.hold()
    threads.add {}
    withExtendedLifetime(hold) {}
    hold = nil
    try ends.wait("it ends") { $0.count >= 1 }
  }

  /// A thread that has ended is not counted: its place is free for another thread.
  @Test func anEndedThreadIsReplaced() throws {
    let (begun, ends, heard) = (Heard<Int>(), Heard<Int>(), Heard<Int>())
    let threads = CallThreads(most: 1) { body throws(Errno) in
      begun.add(1)
      try Thread("only") {
        body()
        ends.add(1)
      }.detach()
    }
    threads.add { heard.add(1) }
    try ends.wait("the idle thread ends") { $0.count == 1 }
    threads.add { heard.add(2) }
    try heard.wait("both calls") { $0.count == 2 }
    try ends.wait("the second thread ends") { $0.count == 2 }
    let hold = try threads.hold()
    #expect(begun.count == 3)
    withExtendedLifetime(hold) {}
  }

  @Test func aQueueMakesOneCallAfterTheOther() throws {
    let (queue, heard, busy) = (WorkQueue(), Heard<Int>(), Monitor(0))
    for number in 0..<1000 {
      queue.soon {
        #expect(busy.withLock { $0 } == 0)
        busy.withLock { $0 += 1 }
        heard.add(number)
        busy.withLock { $0 -= 1 }
      }
    }
    try heard.wait("all") { $0.count == 1000 }
    #expect(heard.all == Array(0..<1000))
  }

  /// Several threads wake up for moments in quick succession, and any of them may be the first.
  @Test func aQueueMakesLaterCallsInTheOrderOfTheirMoments() throws {
    let (queue, heard) = (WorkQueue(), Heard<Int>())
    for round in 0..<20 {
      let moment = Instant.now + .milliseconds(5)
      for number in 0..<50 {
        queue.later(moment + .nanoseconds(number)) { heard.add(50 * round + number) }
      }
      try heard.wait("round \(round)") { $0.count == 50 * (round + 1) }
    }
    #expect(heard.all == Array(0..<1000))
  }

  @Test func aQueueMakesACallNoEarlierThanAfterItsPause() throws {
    let (queue, heard, begin) = (WorkQueue(), Heard<Instant>(), Instant.now)
    queue.soon(after: .milliseconds(50)) { heard.add(.now) }
    try heard.wait("the call") { $0.count == 1 }
    #expect(heard.all.allSatisfy { $0 - begin >= .milliseconds(50) })
  }

  /// If no thread has started the queued calls, the waiting thread makes the calls itself.
  @Test func whoeverWaitsForAQueueComesAfterAllThatWereAdded() throws {
    let (queue, heard) = (WorkQueue(), Heard<Int>())
    for round in 0..<200 {
      queue.soon { heard.add(2 * round) }
      queue.wait { heard.add(2 * round + 1) }
    }
    #expect(heard.all == Array(0..<400))
  }

  @Test func aQueueWaitsForTheCallThatIsUnderWay() throws {
    let (queue, gate, heard) = (WorkQueue(), Gate(), Heard<Int>())
    queue.soon {
      gate.pass()
      heard.add(1)
    }
    try gate.waitForSomebody()
    let waiter = try Thread("waiter") { queue.wait { heard.add(2) } }
    queue.soon { heard.add(3) }
    #expect(heard.count == 0)
    gate.open()
    waiter.join()
    try heard.wait("all") { $0.count == 3 }
    #expect(heard.all.first == 1)
  }
}
