package import Dispatch
package import Syscalls

/// A clock that messages go by in place of the machine's: for tests.
///
/// Retries, deadlines and times to live follow it. Stamps, and with them the order of messages, do
/// not: other processes have to be able to compare them. Nor do locks.
package protocol MailClock: AnyObject, Sendable {
  var now: Instant { get }
  /// In nanoseconds since the machine was started, as the deadlines of what is for now.
  var sinceBoot: Int64 { get }
  /// Calls the closure once that moment has come, on whatever thread.
  func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void)
}

/// What messages take for the time: the machine's, or what a test says.
package struct MailTime: Sendable {
  package var moved: (any MailClock)?

  package init(moved: (any MailClock)? = nil) { self.moved = moved }

  package var now: Instant { moved?.now ?? .now }
  var sinceBoot: Int64 { moved?.sinceBoot ?? Clocks.sinceBoot }

  /// Calls the closure on a queue once that moment has come.
  package func ring(
    at moment: Instant, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void
  ) {
    if let moved {
      moved.ring(at: moment) { queue.async(execute: body) }
    } else {
      let pause = max(0, (moment - .now).inNanoseconds)
      queue.asyncAfter(deadline: .now() + .nanoseconds(Int(pause)), execute: body)
    }
  }
}

extension Wormhole.Options {
  var time: MailTime { MailTime(moved: clock) }
}
