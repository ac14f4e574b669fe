internal import WormholeCLinux

/// Descriptors that several threads wait for at once, each for the next event.
///
/// When a descriptor becomes readable, the kernel wakes one waiter, the last to arrive, and reports
/// the event once: all remaining waiters sleep until more data arrives. So the woken thread reads
/// all available data, or calls ``tellAgain(of:as:)``.
package struct WaitSet: ~Copyable, Sendable {
  private let descriptor: Descriptor

  package init() throws(Errno) {
    descriptor = Descriptor(adopting: try perform(.epoll) { linux_epoll_create() })
  }

  /// Adds a descriptor to the set, under a key of the caller's, until the descriptor is closed.
  package func add(_ member: borrowing Descriptor, as key: UInt64) throws(Errno) {
    let (set, added) = (try descriptor.number, try member.number)
    _ = try perform(.epollControl, on: added) { linux_epoll_add(set, added, key) }
  }

  /// Reports a descriptor once more if it is still readable.
  package func tellAgain(of member: borrowing Descriptor, as key: UInt64) throws(Errno) {
    let (set, member) = (try descriptor.number, try member.number)
    _ = try perform(.epollControl, on: member) { linux_epoll_renew(set, member, key) }
  }

  /// Waits for a descriptor to become readable, and returns its key.
  ///
  /// Nil means that the deadline has passed, or that a signal arrived: the caller checks again.
  package func wait(until deadline: Instant?) throws(Errno) -> UInt64? {
    let set = try descriptor.number
    var key: UInt64 = 0
    let count = try ignoring(
      .interrupted,
      perform(.epollWait, on: set, retrying: false) {
        linux_epoll_wait(set, &key, millisecondsLeft(until: deadline))
      })
    return count ?? 0 > 0 ? key : nil
  }
}

/// Returns the remaining time, rounded up, so that a wait never ends before its deadline.
func millisecondsLeft(until deadline: Instant?) -> CInt {
  guard let deadline else { return -1 }
  let left = (deadline - Instant.now).inNanoseconds
  return left <= 0 ? 0 : CInt(clamping: (left - 1) / 1_000_000 + 1)
}
