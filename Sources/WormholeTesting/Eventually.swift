internal import Wormhole
internal import WormholeSyscalls

/// Waits until a condition holds.
///
/// It throws `WormholeError.Code.timedOut` if the condition never holds. Use it for an action of
/// another process, thread or task; during the wait other tasks run.
///
/// - Parameters:
///   - what: the awaited event, for the error.
///   - time: the time limit, on the host's clock: long, because test hosts are busy.
///   - condition: the condition to hold.
public func eventually(
  _ what: String, within time: Duration = .seconds(30), _ condition: () throws -> Bool
) async throws {
  var looks = Looks(within: time)
  while !(try condition()) {
    guard let pause = looks.next() else { throw tooLate(what, time) }
    try await Task.sleep(for: pause)
  }
}

/// Waits on this thread until a condition holds: for tests without tasks.
///
/// As the function for tasks.
public func eventually(
  _ what: String, within time: Duration = .seconds(30), _ condition: () throws -> Bool
) throws {
  var looks = Looks(within: time)
  let nobody = Monitor(())
  while !(try condition()) {
    guard let pause = looks.next() else { throw tooLate(what, time) }
    let _: Void? = nobody.wait(until: .now + pause) { _ in nil }
  }
}

private func tooLate(_ what: String, _ time: Duration) -> WormholeError {
  WormholeError(.timedOut, "wait for", what, because: "the condition did not hold within \(time)")
}

/// The pauses between checks: short at first, and never longer than a fiftieth of a second.
private struct Looks {
  private let deadline: Instant
  private var pause = Duration.microseconds(100)
  private var isLast = false

  init(within time: Duration) { deadline = .now + time }

  /// Returns the pause before the next check; nil after the last check.
  mutating func next() -> Duration? {
    guard !isLast else { return nil }
    // The last check happens after the deadline.
    isLast = Instant.now + pause >= deadline
    defer { pause = min(pause * 2, .milliseconds(20)) }
    return pause
  }
}
