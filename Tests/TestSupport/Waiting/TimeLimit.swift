package import WormholeSyscalls

/// A time limit that an overloaded machine does not break.
///
/// While more threads are runnable than the machine has processors, time counts only in part: half
/// of the time with two threads for each processor. The limit is over at the latest after twenty
/// times its length.
package struct TimeLimit {
  private let length: Duration
  private let end: Instant
  private var counted = Duration.zero
  private var last = Instant.now

  package init(_ length: Duration) {
    self.length = length
    end = .now + length * 20
  }

  /// Counts the time since the last call; to be called some fifty times a second.
  package mutating func isOver() -> Bool {
    let now = Instant.now
    let step = now - last
    guard counted + step >= length || step >= .milliseconds(10) else { return false }
    counted += step * Machine.share
    last = now
    return counted >= length || now >= end
  }
}

extension Monitor {
  /// As ``wait(until:_:)``, with a time limit in place of a deadline.
  package func wait<Result>(
    within time: Duration, _ body: (inout State) -> Result?
  ) -> Result? {
    var limit = TimeLimit(time)
    while true {
      if let result = wait(until: .now + .milliseconds(20), body) { return result }
      if limit.isOver() { return withLock(body) }
    }
  }
}
