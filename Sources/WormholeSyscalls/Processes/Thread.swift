import WormholeLibC
internal import WormholeCLinux

/// A thread for calls that block.
///
/// Swift's own pool has as many threads as cores: on two cores, two blocked threads would stop the
/// program.
package final class Thread: Sendable {
  private let handle: UInt

  private final class Start {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a thread; the creator joins the thread once, or detaches it.
  ///
  /// Signals go to the program's own threads, never to this thread.
  package init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    let start = Unmanaged.passRetained(Start(name, body))
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    // Signals that a thread causes itself stay unblocked: with them blocked, the thread would die
    // without a message.
    for fault in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] {
      sigdelset(&all, fault)
    }
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var handle: UInt = 0
    let result = linux_start_thread(
      &handle,
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

  /// A number that is unique among the running threads of this process.
  package static var currentNumber: UInt { linux_current_thread() }

  /// Whether the current thread is the one that `main` runs on.
  package static var isMain: Bool { linux_is_main_thread() != 0 }

  /// What the current thread has noted last for itself; nil at first.
  package static var mark: UnsafeRawPointer? {
    get { UnsafeRawPointer(linux_thread_mark()) }
    set { linux_set_thread_mark(newValue) }
  }

  /// Whether this is the calling thread.
  package var isCurrent: Bool { handle == linux_current_thread() }

  /// Lets the calling thread wait for a time, on the clock by which the kernel ends waits.
  ///
  /// For pauses between two attempts while no notice can end the wait. The monitor of the pause is
  /// new, and not inherited: in a child made by `fork` the pause lasts as long as in its parent.
  package static func pause(_ time: Duration) {
    let _: Void? = Monitor(0).wait(until: .now + time) { _ in nil }
  }

  package func join() { linux_join_thread(handle) }

  /// Lets the thread end without a join.
  package func detach() { linux_detach_thread(handle) }
}
