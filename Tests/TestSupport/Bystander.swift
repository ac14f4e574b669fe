import Syscalls

/// A thread that does nothing but wait, and notes how much later than asked for it was woken.
///
/// What it saw is what the machine did to everybody meanwhile, so a bound on somebody else's wait
/// can be judged beside it.
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

  /// Ends it; the longest delay it has seen.
  package func longestDelay() -> Duration {
    state.signal { $0.isOver = true }
    return state.withLock { $0.longest }
  }

  /// Ends it; what the machine may have added to what takes a few steps, each of them held up as
  /// long.
  package func allowance() -> Duration { longestDelay() * 4 }

  deinit {
    state.signal { $0.isOver = true }
    thread.join()
  }
}

extension Bystander {
  /// How long something takes, but for what the machine does to everybody meanwhile.
  package static func time(_ body: () throws -> Void) throws -> Duration {
    let (bystander, start) = (try Bystander(), Instant.now)
    try body()
    let time = Instant.now - start
    return time - bystander.allowance()
  }

  /// The shortest of three times at most; it is done again only while that is more than it may be.
  ///
  /// A busy disk delays somebody now and then, whatever processors do; what holds others up does so
  /// each time.
  package static func leastOfThree(
    within bound: Duration, _ body: () throws -> Duration
  ) rethrows -> Duration {
    var time = try body()
    for _ in 0..<2 where time >= bound { time = min(time, try body()) }
    return time
  }
}
