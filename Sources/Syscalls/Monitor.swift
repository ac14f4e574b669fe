import Glibc

/// A value behind a lock, with a condition that threads wait for until a deadline.
///
/// The kind of lock used throughout. The standard library's Mutex has no condition, and under
/// contention the thread sanitizer does not see it and reports races that are none.
///
/// What it does is inlinable: if the rooms above did not know what it is made of, they would look
/// up the type of its state at every use, which takes longer than locking. It is public for that
/// alone, as the compiler inlines nothing of another module's that is only the package's: users see
/// nothing of this module.
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
  // What they point to is made for being used by many threads.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  @usableFromInline init() {
    // Their addresses must not change, so both live on the heap.
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  @usableFromInline func free() {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  @usableFromInline func lock() { pthread_mutex_lock(mutex) }
  @usableFromInline func unlock() { pthread_mutex_unlock(mutex) }

  @usableFromInline func broadcast() { pthread_cond_broadcast(condition) }

  /// Waits for a broadcast, with the lock given back meanwhile; false if the deadline has passed.
  @usableFromInline func wait(until deadline: Instant?) -> Bool {
    guard let deadline else {
      pthread_cond_wait(condition, mutex)
      return true
    }
    guard deadline.nanoseconds > 0, Instant.now < deadline else { return false }
    var time = timespec(
      tv_sec: Int(deadline.nanoseconds / 1_000_000_000),
      tv_nsec: Int(deadline.nanoseconds % 1_000_000_000))
    pthread_cond_timedwait(condition, mutex, &time)
    return true
  }
}
