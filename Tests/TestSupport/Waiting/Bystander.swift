import WormholeSyscalls

/// A thread that only waits, and records how much later than requested it was woken.
///
/// Its delay is the delay that the machine caused to all threads in the meantime, so a bound on
/// another thread's wait can be judged beside it.
package final class Bystander: Sendable {
  private let state = Monitor((isOver: false, longest: Duration.zero))
  private let thread: Thread

  package init() throws {
    let state = self.state
    thread = try Thread("bystander") {
      let nap = Duration.milliseconds(10)
      while true {
        let asked = Instant.now + nap
        let isOver = state.wait(until: asked) { $0.isOver ? true : nil }
        if isOver == true { return }
        let late = Instant.now - asked
        state.withLock { $0.longest = max($0.longest, late) }
      }
    }
  }

  /// Ends the thread; returns the longest delay of the thread.
  package func longestDelay() -> Duration {
    state.signal { $0.isOver = true }
    return state.withLock { $0.longest }
  }

  /// Ends the thread; returns the time that the machine may have added to an operation of a few
  /// steps, each delayed as long.
  package func allowance() -> Duration { longestDelay() * 4 }

  deinit {
    state.signal { $0.isOver = true }
    thread.join()
  }
}

extension Bystander {
  /// The duration of the body, without the delays that the machine caused to all threads.
  package static func time(_ body: () throws -> Void) throws -> Duration {
    let (bystander, start) = (try Bystander(), Instant.now)
    try body()
    let time = Instant.now - start
    return time - bystander.allowance()
  }

  /// The shortest of at most three times; the body is repeated only while its time exceeds the
  /// bound.
  ///
  /// A busy disk delays a process now and then, whatever the processors do; an operation that
  /// blocks causes a delay each time.
  package static func leastOfThree(
    within bound: Duration, _ body: () throws -> Duration
  ) rethrows -> Duration {
    var time = try body()
    for _ in 0..<2 where time >= bound { time = min(time, try body()) }
    return time
  }
}
