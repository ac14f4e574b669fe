internal import CLinux

/// A value behind a lock, with a condition that threads wait for until a deadline.
///
/// The kind of lock used throughout. The standard library's Mutex has no condition, and under
/// contention the thread sanitizer does not see it and reports races that are none.
///
/// What it does is inlinable: if the rooms above did not know what it is made of, they would look
/// up the type of its state at every use, which takes longer than locking. It is public for that
/// alone, as the compiler inlines nothing of another module's that is only the package's: users see
/// nothing of this module.
///
/// Two states to avoid. One of no size, `Monitor(())`, has no place of its own: the sanitizer of
/// threads takes the lock's for it, and reports races that are none; where only turns are wanted,
/// `Monitor(0)` does it. And a closure stands in an ``Action``: each look at one that is the state
/// itself wraps it once more, so that it grows for ever.
///
/// In a copy of the process, as `fork` makes it, threads are gone that may have held what it has
/// inherited, or whom it would wait for. So there an inherited monitor is free, and a wait for it
/// ends at once, as if its deadline had passed. Whoever held it may have left the state half
/// changed: those who can fail look first whether they are in a copy, see ``ProcessCopy``.
public final class Monitor<State>: @unchecked Sendable {
  // The state is touched only under the lock, which is what makes the class sendable.
  @usableFromInline let gate = Gate()
  // Only ever touched under the lock, so the checks at run time that nobody else does find nothing,
  // and cost as much as the lock.
  @exclusivity(unchecked) @usableFromInline var state: State

  /// A monitor of a value that nobody else has.
  @inlinable public init(_ state: sending State) { self.state = state }

  deinit { gate.free() }

  /// Reads or changes the state under the lock.
  @inlinable public func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    gate.lock()
    defer { gate.unlock() }
    return try body(&state)
  }

  /// Wakes all who wait, so that they ask again.
  ///
  /// May be called under the lock.
  @inlinable public func broadcast() { gate.broadcast() }

  /// Changes the state and wakes all who wait.
  ///
  /// They are woken once the lock is free, which they need: on one processor they would otherwise
  /// run at once, find it taken, and wait again.
  @inlinable public func signal<Result>(_ body: (inout State) -> Result) -> Result {
    gate.lock()
    let result = body(&state)
    gate.unlock()
    gate.broadcast()
    return result
  }

  /// Waits until the body answers something or the deadline has passed; nil then.
  ///
  /// The body is asked at once, after every signal, and once more at the end.
  @inlinable public func wait<Result>(
    until deadline: Instant?, _ body: (inout State) -> Result?
  ) -> Result? {
    gate.lock()
    defer { gate.unlock() }
    while true {
      if let result = body(&state) { return result }
      guard gate.wait(until: deadline) else { return nil }
    }
  }
}

/// The lock and the condition of a monitor.
@usableFromInline struct Gate: @unchecked Sendable {
  // What it points to is made for being used by many threads.
  private let gate: OpaquePointer

  @usableFromInline init() { gate = linux_gate_make() }
  @usableFromInline func free() { linux_gate_free(gate) }
  @usableFromInline func lock() { linux_gate_lock(gate) }
  @usableFromInline func unlock() { linux_gate_unlock(gate) }
  @usableFromInline func broadcast() { linux_gate_broadcast(gate) }

  /// Waits for a broadcast, with the lock given back meanwhile; false if the deadline has passed.
  @usableFromInline func wait(until deadline: Instant?) -> Bool {
    guard let deadline else { return linux_gate_wait(gate, -1) != 0 }
    guard deadline.nanoseconds > 0, Instant.now < deadline else { return false }
    return linux_gate_wait(gate, deadline.nanoseconds) != 0
  }
}
