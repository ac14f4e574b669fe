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
    // Those that a thread brings upon itself are its own: blocked, it would die without a word.
    for fault in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] {
      sigdelset(&all, fault)
    }
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

  /// What the current thread has noted last for itself; nil at first.
  package static var mark: UnsafeRawPointer? {
    get { UnsafeRawPointer(linux_thread_mark()) }
    set { linux_set_thread_mark(newValue) }
  }

  /// Whether this is the thread that asks.
  package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

  package func join() { pthread_join(handle, nil) }

  /// Lets the thread end by itself, with nobody waiting for it.
  package func detach() { pthread_detach(handle) }
}
