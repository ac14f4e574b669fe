internal import WormholeCLinux

/// A value behind a lock, with a condition that threads wait for until a deadline.
///
/// The kind of lock used throughout the package. The standard library's Mutex has no condition, and
/// under contention the thread sanitizer does not recognize a Mutex and reports false races.
///
/// The functions of a monitor are inlinable: if the modules above did not know the layout, they
/// would look up the type of the state at every use, which takes longer than locking. The class is
/// public for that reason alone, because the compiler inlines no `package` function of another
/// module: users see nothing of this module.
///
/// Avoid two kinds of state. A state of size zero, `Monitor(())`, has no address of its own: the
/// thread sanitizer takes the lock's address for it, and reports false races; where only mutual
/// exclusion is needed, use `Monitor(0)`. A closure must be wrapped in an ``Action``: each access
/// to a closure that is itself the state wraps the closure once more, so that the state grows
/// forever.
///
/// A child made by `fork` lacks the threads that may have held an inherited monitor, and the
/// threads for which the child would wait. So in the child an inherited monitor is free, and a wait
/// ends at once, as if the deadline had passed. The holder may have left the state half changed:
/// functions that can fail check first whether they run in a forked child, see ``ProcessCopy``.
public final class Monitor<State>: @unchecked Sendable {
  // The state is accessed only under the lock, so the class is sendable.
  @usableFromInline let gate = MonitorGate()
  // The state is accessed only under the lock. So the exclusivity checks at run time would find
  // nothing, and cost as much as the lock.
  @exclusivity(unchecked) @usableFromInline var state: State

  /// Creates a monitor as the only owner of a value.
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

  /// Wakes all waiters to check their conditions again.
  ///
  /// May be called under the lock.
  @inlinable public func broadcast() { gate.broadcast() }

  /// Changes the state and wakes all waiters.
  ///
  /// The waiters are woken after the lock is free, because they need the lock: on one processor a
  /// waiter would otherwise run at once, find the lock taken, and wait again.
  @inlinable public func signal<Result>(_ body: (inout State) -> Result) -> Result {
    gate.lock()
    let result = body(&state)
    gate.unlock()
    gate.broadcast()
    return result
  }

  /// Waits until the body returns a result or the deadline has passed; returns nil after the
  /// deadline.
  ///
  /// The body runs at once, after every signal, and once more at the end.
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

/// A wrapper that stores a closure where a value of any type can be stored, as in a ``Monitor``.
///
/// A closure that is itself such a value is wrapped once more at each access.
package struct Action: Sendable {
  package let perform: @Sendable () -> Void

  package init(_ perform: @escaping @Sendable () -> Void) { self.perform = perform }
}

/// The lock and the condition of a monitor.
@usableFromInline struct MonitorGate: @unchecked Sendable {
  // The C object behind the pointer is made for use by many threads.
  private let gate: OpaquePointer

  @usableFromInline init() { gate = linux_gate_make() }
  @usableFromInline func free() { linux_gate_free(gate) }
  @usableFromInline func lock() { linux_gate_lock(gate) }
  @usableFromInline func unlock() { linux_gate_unlock(gate) }
  @usableFromInline func broadcast() { linux_gate_broadcast(gate) }

  /// Waits for a broadcast, with the lock released during the wait; false if the deadline has
  /// passed.
  @usableFromInline func wait(until deadline: Instant?) -> Bool {
    guard let deadline else { return linux_gate_wait(gate, -1) != 0 }
    guard deadline.nanoseconds > 0, Instant.now < deadline else { return false }
    return linux_gate_wait(gate, deadline.nanoseconds) != 0
  }
}
