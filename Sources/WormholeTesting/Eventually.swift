internal import Syscalls
internal import Wormhole

/// Waits until a condition holds.
///
/// It throws `WormholeError.Code.timedOut` if that never happens. It is for what another process,
/// thread or task is about to do, and gives way to other tasks meanwhile.
///
/// - Parameters:
///   - what: what is waited for, for the error.
///   - time: how long, on the machine's clock: long, because test machines are busy.
///   - condition: what is to hold.
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
/// As the one for tasks.
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
  WormholeError(.timedOut, "wait for", what, because: "it did not happen within \(time)")
}

/// The pauses between looks: short at first, and never longer than a fiftieth of a second.
private struct Looks {
  private let deadline: Instant
  private var pause = Duration.microseconds(100)
  private var isLast = false

  init(within time: Duration) { deadline = .now + time }

  /// Nil once there is to be no other look.
  mutating func next() -> Duration? {
    guard !isLast else { return nil }
    // The last look comes after the deadline.
    isLast = Instant.now + pause >= deadline
    defer { pause = min(pause * 2, .milliseconds(20)) }
    return pause
  }
}
