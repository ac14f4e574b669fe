package import Syscalls
public import Wormhole

/// A clock that stands still until the test moves it.
///
/// What messages wait for goes by it, where a container is opened with options that use it: times
/// to live, pauses before another attempt, deadlines of requests, how long a sender waits for room
/// or for an outcome, and what a ``Link`` holds back. Locks keep the machine's clock, and so does
/// the order of messages, which other processes have to agree on; another process knows nothing of
/// this clock.
///
/// What waits has an *alarm*. A test that wants to skip a pause waits until there is an alarm and
/// moves the clock to it: `advanceToNextAlarm(within:)`.
public final class TestClock: Sendable {
  private struct Alarm: Sendable {
    let moment: Instant
    let ring: @Sendable () -> Void
  }

  private struct State {
    var moved = Duration.zero
    var alarms: [Alarm] = []
  }

  /// So far that what is added to its time can still be said.
  private static let furthest = Duration.seconds(50 * 365 * 86_400)

  private let start = Instant.now
  private let startSinceBoot = Clocks.sinceBoot
  private let startSinceEpoch = Clocks.sinceEpoch
  private let state = Monitor(State())

  /// A clock that shows the present time, and goes on showing it.
  public init() {}

  /// How far it was moved.
  public var elapsed: Duration { state.withLock { $0.moved } }

  /// How many alarms are set.
  ///
  /// One whose reason has passed, as the deadline of a request that was answered, may still be
  /// among them.
  public var alarms: Int { state.withLock { $0.alarms.count } }

  /// How far off the next alarm is; nil if none is set.
  public var untilNextAlarm: Duration? {
    state.withLock { state in
      state.alarms.map(\.moment).min().map { $0 - (start + state.moved) }
    }
  }

  /// Moves the clock, and has each alarm ring that it comes to, in order.
  ///
  /// When this returns the alarms have rung; what they set off goes on elsewhere, and alarms that
  /// it sets are reckoned from then. It goes fifty years ahead at most.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "a clock does not go back")
    let target = state.withLock { min(start + $0.moved + duration, start + Self.furthest) }
    while true {
      let due = state.withLock { state -> Alarm? in
        let next = state.alarms.indices.min { state.alarms[$0].moment < state.alarms[$1].moment }
        guard let next, state.alarms[next].moment <= target else {
          state.moved = max(state.moved, target - start)
          return nil
        }
        let alarm = state.alarms.remove(at: next)
        state.moved = max(state.moved, alarm.moment - start)
        return alarm
      }
      guard let due else { return }
      due.ring()
    }
  }

  /// Waits until an alarm is set, and moves the clock to the next one.
  ///
  /// - Parameter time: how long it waits, on the machine's clock.
  public func advanceToNextAlarm(within time: Duration = .seconds(30)) async throws {
    try await eventually("an alarm of the test's clock", within: time) { alarms > 0 }
    advance(by: max(.zero, untilNextAlarm ?? .zero))
  }

  /// Waits on this thread until an alarm is set, and moves the clock to the next one.
  ///
  /// - Parameter time: how long it waits, on the machine's clock.
  public func advanceToNextAlarm(within time: Duration = .seconds(30)) throws {
    try eventually("an alarm of the test's clock", within: time) { alarms > 0 }
    advance(by: max(.zero, untilNextAlarm ?? .zero))
  }

  fileprivate var sinceEpoch: Int64 { startSinceEpoch + elapsed.inNanoseconds }
}

extension TestClock: MailClock {
  package var now: Instant { start + elapsed }

  package var sinceBoot: Int64 { startSinceBoot + elapsed.inNanoseconds }

  package func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void) {
    let isPast = state.withLock { state in
      guard moment > start + state.moved else { return true }
      state.alarms.append(Alarm(moment: moment, ring: body))
      return false
    }
    if isPast { body() }
  }
}

extension Wormhole.Options {
  /// Has messages go by a clock that the test moves.
  public mutating func use(_ clock: TestClock) {
    self.clock = clock
    environment.sinceEpoch = { clock.sinceEpoch }
  }
}
