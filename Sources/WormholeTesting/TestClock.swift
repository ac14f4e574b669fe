public import Wormhole
package import WormholeSyscalls

/// A clock that stands still until the test moves it.
///
/// If a container is opened with options that use the clock, the clock decides all waits of
/// messages: times to live, pauses before another attempt, deadlines of requests, the waits of a
/// sender for space or for an outcome, and the delays of a ``Link``. Locks use the host's clock,
/// and so does the order of messages, on which other processes must agree; the clock has no effect
/// on other processes.
///
/// The clock is also an `any Clock<Duration>`, for a program's own code that takes one.
///
/// Each wait has an *alarm*. A test that wants to skip a pause waits until an alarm is set and
/// moves the clock to the alarm: `advanceToNextAlarm(within:)`.
public final class TestClock: Sendable {
  private struct Alarm: Sendable {
    let number: Int
    let moment: Moment
    let ring: @Sendable () -> Void
  }

  private struct State {
    var moved = Duration.zero
    var alarms: [Alarm] = []
    var alarmCount = 0
  }

  /// A time of the host's clock; ``Instant`` is a time of this clock.
  private typealias Moment = WormholeSyscalls.Instant

  /// The limit of the clock: times added to it must not overflow.
  private static let furthest = Duration.seconds(50 * 365 * 86_400)

  private let start = Moment.now
  private let startSinceBoot = Clocks.sinceBoot
  private let startSinceEpoch = Clocks.sinceEpoch
  private let state = Monitor(State())

  /// Creates a clock that shows the current time, and continues to show it.
  public init() {}

  /// The duration by which the clock was moved.
  public var elapsed: Duration { state.withLock { $0.moved } }

  /// The number of alarms.
  ///
  /// An alarm whose reason has passed may still be counted, such as the deadline of a request that
  /// has its reply.
  public var alarms: Int { state.withLock { $0.alarms.count } }

  /// The duration until the next alarm; nil if no alarm is set.
  public var untilNextAlarm: Duration? {
    state.withLock { state in
      state.alarms.map(\.moment).min().map { $0 - (start + state.moved) }
    }
  }

  /// Moves the clock, and rings each alarm that it reaches, in order.
  ///
  /// When this call returns, the alarms have rung; their effects continue elsewhere, and the alarms
  /// that they set count from the new time. The clock advances at most fifty years.
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

  /// Waits until an alarm is set, and moves the clock to the next alarm.
  ///
  /// - Parameter time: the time limit, on the host's clock.
  public func advanceToNextAlarm(within time: Duration = .seconds(30)) async throws {
    try await eventually("an alarm of the test's clock", within: time) { alarms > 0 }
    advance(by: max(.zero, untilNextAlarm ?? .zero))
  }

  /// Waits on this thread until an alarm is set, and moves the clock to the next alarm.
  ///
  /// - Parameter time: the time limit, on the host's clock.
  public func advanceToNextAlarm(within time: Duration = .seconds(30)) throws {
    try eventually("an alarm of the test's clock", within: time) { alarms > 0 }
    advance(by: max(.zero, untilNextAlarm ?? .zero))
  }

  fileprivate var sinceEpoch: Int64 { startSinceEpoch + elapsed.inNanoseconds }
}

extension TestClock: MailClock {
  package var present: WormholeSyscalls.Instant { start + elapsed }

  package var sinceBoot: Int64 { startSinceBoot + elapsed.inNanoseconds }

  package func ring(
    at moment: WormholeSyscalls.Instant, _ body: @escaping @Sendable () -> Void
  ) {
    if set(at: moment, body) == nil { body() }
  }

  /// Sets an alarm; returns its number, or nil if the moment has come already.
  private func set(at moment: Moment, _ body: @escaping @Sendable () -> Void) -> Int? {
    state.withLock { state in
      guard moment > start + state.moved else { return nil }
      state.alarmCount += 1
      state.alarms.append(Alarm(number: state.alarmCount, moment: moment, ring: body))
      return state.alarmCount
    }
  }
}

extension TestClock: Clock {
  /// A time of the clock.
  public struct Instant: InstantProtocol {
    /// The duration by which the clock is moved at this time.
    fileprivate let elapsed: Duration

    /// Returns the time after a duration.
    public func advanced(by duration: Duration) -> Instant {
      Instant(elapsed: elapsed + duration)
    }

    /// Returns the duration until another time.
    public func duration(to other: Instant) -> Duration { other.elapsed - elapsed }

    /// Whether the first time is earlier.
    public static func < (one: Instant, other: Instant) -> Bool { one.elapsed < other.elapsed }
  }

  /// The time that the clock shows.
  public var now: Instant { Instant(elapsed: elapsed) }

  /// One nanosecond.
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// Waits until the test has moved the clock to the deadline.
  ///
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let sleep = Sleep()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleep.begin(continuation)
        let moment = start + min(deadline.elapsed, Self.furthest)
        let alarm = set(at: moment) { sleep.end(.success(())) }
        guard let alarm else { return sleep.end(.success(())) }
        sleep.onCancel { self.remove(alarm) }
      }
    } onCancel: {
      sleep.cancel()
    }
  }

  private func remove(_ alarm: Int) {
    state.withLock { $0.alarms.removeAll { $0.number == alarm } }
  }

  /// One wait of a task, which the alarm or the cancellation of the task ends.
  private final class Sleep: Sendable {
    private struct Progress {
      var continuation: CheckedContinuation<Void, any Error>?
      var isCancelled = false
      var cleanUp: (@Sendable () -> Void)?
    }

    private let progress = Monitor(Progress())

    func begin(_ continuation: CheckedContinuation<Void, any Error>) {
      progress.withLock { $0.continuation = continuation }
    }

    /// - Parameter cleanUp: called once if the task is cancelled, now or later.
    func onCancel(_ cleanUp: @escaping @Sendable () -> Void) {
      let isCancelled = progress.withLock { progress in
        progress.cleanUp = cleanUp
        return progress.isCancelled
      }
      if isCancelled { cancel() }
    }

    func cancel() {
      let cleanUp = progress.withLock { progress in
        progress.isCancelled = true
        return progress.cleanUp.take()
      }
      // Without the clean-up, the sleep has not begun, and `onCancel` calls this again.
      guard let cleanUp else { return }
      cleanUp()
      end(.failure(CancellationError()))
    }

    func end(_ result: Result<Void, any Error>) {
      progress.withLock { $0.continuation.take() }?.resume(with: result)
    }
  }
}

extension Options {
  /// Makes messages use a clock that the test moves.
  public mutating func use(_ clock: TestClock) {
    self.clock = clock
    environment.sinceEpoch = { clock.sinceEpoch }
  }
}
