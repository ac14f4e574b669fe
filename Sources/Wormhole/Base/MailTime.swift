package import WormholeSyscalls

/// A clock for messages in place of the machine's clock: for tests.
///
/// Retries, deadlines and times to live follow the clock. Stamps, and with them the order of
/// messages, do not: all processes must be able to compare stamps. Locks do not follow the clock
/// either, and waits of threads cannot: the kernel ends them by its own clock.
package protocol MailClock: AnyObject, Sendable {
  /// The present time; a `Clock` has a `now` of its own.
  var present: Instant { get }
  /// In nanoseconds since the machine was started, as the deadlines of immediate messages.
  var sinceBoot: Int64 { get }
  /// Calls the closure once the moment has come, on any thread.
  func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void)
}

/// The time for messages: from the machine's clock, or from a test's clock.
///
/// A moment of this clock is compared with ``now``, or passed to ``ring(at:on:_:)``. A monitor
/// waits until such a moment only if no test has a clock. `Instant.now` is the machine's clock, for
/// everything but messages: the house rule `clocks` lists the files that read `Instant.now`, and
/// states what each file measures.
package struct MailTime: Sendable {
  package var moved: (any MailClock)?

  package init(moved: (any MailClock)? = nil) { self.moved = moved }

  package var now: Instant { moved?.present ?? .now }
  var sinceBoot: Int64 { moved?.sinceBoot ?? Clocks.sinceBoot }

  /// Calls the closure on a queue once the moment has come.
  package func ring(
    at moment: Instant, on queue: any CallQueue, _ body: @escaping @Sendable () -> Void
  ) {
    if let moved {
      moved.ring(at: moment) { queue.soon(body) }
    } else {
      queue.later(moment, body)
    }
  }
}

extension Options {
  var time: MailTime { MailTime(moved: clock) }
}
