/// Stops an activity when the last reference is released.
final class StopOnRelease<One: Stoppable>: Sendable {
  let one: One

  init(_ one: One) { self.one = one }

  deinit { stop() }

  func stop() { one.stop() }
}
