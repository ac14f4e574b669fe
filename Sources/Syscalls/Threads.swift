internal import CLinux
import Glibc

/// A thread for calls that block.
///
/// Swift's own pool has as many threads as cores, and two that
/// block would stop the program.
package final class Thread: Sendable {
  private let handle: pthread_t

  private final class Start {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a thread; whoever starts it joins it once, or detaches it.
  ///
  /// Signals go to the program's own threads, never to this one.
  package init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    let start = Unmanaged.passRetained(Start(name, body))
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var handle = pthread_t()
    let result = pthread_create(
      &handle, nil,
      { argument in
        let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
        linux_name_thread(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    guard result == 0 else {
      start.release()
      throw Errno(rawValue: result)
    }
    self.handle = handle
  }

  /// A number that no other running thread of this process has.
  package static var currentNumber: UInt { UInt(pthread_self()) }

  /// Whether this is the thread that asks.
  package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

  package func join() { pthread_join(handle, nil) }

  /// Lets the thread end by itself, with nobody waiting for it.
  package func detach() { pthread_detach(handle) }
}

/// A value behind a lock, with a condition that threads wait for until a deadline.
///
/// The kind of lock used throughout. The standard library's Mutex has no condition, and under
/// contention the thread sanitizer does not see it and reports races that are none.
package final class Monitor<State>: @unchecked Sendable {
  // The state is touched only under the mutex, which is what makes the class sendable.
  private var state: State
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  package init(_ state: sending State) {
    self.state = state
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

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }

  /// Wakes all who wait, so that they ask again.
  ///
  /// May be called under the lock.
  package func broadcast() { pthread_cond_broadcast(condition) }

  /// Changes the state and wakes all who wait.
  package func signal<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    defer { pthread_cond_broadcast(condition) }
    return body(&state)
  }

  /// Waits until the body answers something or the deadline has passed; nil then.
  ///
  /// The body is asked at once, after every signal, and once more at the end.
  package func wait<Result>(
    until deadline: Instant?, _ body: (inout State) -> Result?
  ) -> Result? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&state) { return result }
      guard let deadline else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      guard deadline.nanoseconds > 0, Instant.now < deadline else { return nil }
      var time = timespec(
        tv_sec: Int(deadline.nanoseconds / 1_000_000_000),
        tv_nsec: Int(deadline.nanoseconds % 1_000_000_000))
      pthread_cond_timedwait(condition, mutex, &time)
    }
  }
}
