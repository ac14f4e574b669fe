internal import WormholeSyscalls

/// A period in which a process takes a lock repeatedly, with no other holder in between.
///
/// A process with an immediate relock beats the waiters that its unlock wakes, and would starve
/// them. After a while it therefore checks for waiters and yields. Shorter periods would divide the
/// time more fairly, but each costs the wake-up of a thread.
struct LockTenure {
  /// The period before a check: the check is a system call, in a loop of a thousand calls.
  private static let length: Int64 = 4_000_000
  /// The longest time to yield: the requesting waiter may have been suspended.
  private static let grace: Int64 = 5_000_000
  private static let look: Int64 = 50_000

  private var began = Int64(0)
  private var ended = Int64(0)
  private var isOver = false

  /// The lock is held, and another process held it before.
  mutating func begin() {
    began = Instant.now.nanoseconds
    isOver = false
  }

  /// The lock is held, and was free.
  mutating func goOn() {
    // A pause also gives waiters a chance.
    let now = Instant.now.nanoseconds
    if now - ended > Self.length { began = now }
  }

  /// The holder is about to unlock.
  mutating func pause(_ file: borrowing Descriptor) {
    ended = Instant.now.nanoseconds
    guard ended - began > Self.length else { return }
    began = ended
    isOver = WaiterFlag.take(from: file)
  }

  /// Waits until another process has held the lock, if a waiter has requested it.
  ///
  /// - Parameter mark: the last mark of this period.
  mutating func stepAside(
    _ file: borrowing Descriptor, _ mark: HolderMark?, until deadline: Instant?
  ) throws(Errno) {
    guard isOver, let mark else { return }
    isOver = false
    let end = min(deadline ?? .distantFuture, Instant(nanoseconds: ended + Self.grace))
    let pause = Monitor(())
    while true {
      let now = Instant.now
      guard now < end, try HolderMark(in: file) == mark else { return }
      let _: Void? = pause.wait(until: Instant(nanoseconds: now.nanoseconds + Self.look)) { _ in
        nil
      }
    }
  }
}
