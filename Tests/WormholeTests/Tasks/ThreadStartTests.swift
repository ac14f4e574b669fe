import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import Wormhole

/// The library's threads: how many are started, and what happens if none can be.
@Suite(.blocking) struct ThreadStartTests {
  @Test func noMoreThreadsAreStartedThanTheBound() throws {
    let hires = Monitor(0)
    let threads = CallThreads(most: 2) { body throws(Errno) in
      hires.withLock { $0 += 1 }
      try Thread("bounded", body).detach()
    }
    let (gates, heard) = ([Gate(), Gate()], Heard<Int>())
    for gate in gates { threads.add { gate.pass() } }
    for gate in gates { try gate.waitForSomebody() }
    threads.add { heard.add(1) }
    threads.add(at: .now) { heard.add(2) }
    #expect(hires.withLock { $0 } == 2)
    #expect(heard.all == [])
    for gate in gates { gate.open() }
    try heard.wait("both") { $0.count == 2 }
    #expect(hires.withLock { $0 } == 2)
  }

  /// Two callers need a thread at the same time, and neither can be started.
  ///
  /// The caller that fails first counts on the thread of the other caller.
  @Test func eachCallIsMadeThoughNoneOfTwoThreadsStarts() throws {
    let (hires, gate, heard) = (Monitor(0), Gate(), Heard<String>())
    let threads = CallThreads(most: 8) { _ throws(Errno) in
      let number = hires.withLock { hires in
        hires += 1
        return hires
      }
      // The first attempt fails last.
      if number == 1 { gate.pass() }
      throw .wouldBlock
    }
    let first = try Thread("first") { threads.add { heard.add("first") } }
    try gate.waitForSomebody()
    threads.add { heard.add("second") }
    gate.open()
    first.join()
    #expect(heard.all.sorted() == ["first", "second"])
  }

  /// A thread blocks its signals before the start of another thread, which inherits the mask.
  ///
  /// If the signals stayed blocked after a failure, no interrupt from a terminal would end the
  /// program any more.
  @Test func aThreadThatCannotStartAnotherOneReceivesItsSignals() throws {
    let outcome = try run(.endAfterRefusedThread)
    if outcome.status == .exited(77) {
      return skip("signals after a refused thread", because: "no system call can be refused")
    }
    #expect(outcome.status == .signalled(15), "\(outcome.errors)")
    #expect(outcome.output == "too many: true\n")
  }
}
