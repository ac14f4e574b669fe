internal import Syscalls

/// The time in which a process has had a lock again and again, and nobody else between.
///
/// Who unlocks and locks again at once is faster than those whom the unlocking wakes, and would
/// leave them nothing. So after a while it looks whether anybody waits, and lets him go first.
/// Shorter turns would be fairer by the clock, and each costs the waking of a thread.
struct Stint {
  /// After how long it looks: a system call, in a loop that makes a thousand meanwhile.
  private static let length: Int64 = 4_000_000
  /// How long others have to come at most: who has asked may have been stopped.
  private static let grace: Int64 = 5_000_000
  private static let look: Int64 = 50_000

  private var began = Int64(0)
  private var ended = Int64(0)
  private var isOver = false

  /// The lock is held, and others had it before.
  mutating func begin() {
    began = Instant.now.nanoseconds
    isOver = false
  }

  /// The lock is held, and was free.
  mutating func goOn() {
    // A pause is an occasion for others too.
    let now = Instant.now.nanoseconds
    if now - ended > Self.length { began = now }
  }

  /// The lock is about to be given back.
  mutating func pause(_ file: borrowing Descriptor) {
    ended = Instant.now.nanoseconds
    guard ended - began > Self.length else { return }
    began = ended
    isOver = WaiterSign.take(from: file)
  }

  /// Waits until somebody else has had the lock, if somebody has asked for it.
  ///
  /// - Parameter mark: the one that was left last in this stint.
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
