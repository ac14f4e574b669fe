internal import CLinux

/// Descriptors that several threads wait for at once, each for whatever comes next.
///
/// When a descriptor becomes readable, one of those that wait is woken, the one that came last, and
/// is told once: the others sleep on until more comes. So whoever is told takes all there is to be
/// read, or has the descriptor told again.
package struct WaitSet: ~Copyable, Sendable {
  private let descriptor: Descriptor

  package init() throws(Errno) {
    descriptor = Descriptor(adopting: try perform(.epoll) { linux_epoll_create() })
  }

  /// Waits for this one too, under a number of the caller's, until it is closed.
  package func add(_ member: borrowing Descriptor, as key: UInt64) throws(Errno) {
    let (set, added) = (try descriptor.number, try member.number)
    _ = try perform(.epollControl, on: added) { linux_epoll_add(set, added, key) }
  }

  /// Tells once more of a descriptor that may be readable still.
  package func tellAgain(of member: borrowing Descriptor, as key: UInt64) throws(Errno) {
    let (set, member) = (try descriptor.number, try member.number)
    _ = try perform(.epollControl, on: member) { linux_epoll_renew(set, member, key) }
  }

  /// The number of a descriptor that has become readable.
  ///
  /// Nil means that time is up, or that a signal came: look again.
  package func wait(until deadline: Instant?) throws(Errno) -> UInt64? {
    let set = try descriptor.number
    var key: UInt64 = 0
    do throws(Errno) {
      let count = try perform(.epollWait, on: set, retrying: false) {
        linux_epoll_wait(set, &key, millisecondsLeft(until: deadline))
      }
      return count > 0 ? key : nil
    } catch {
      guard error == .interrupted else { throw error }
      return nil
    }
  }
}
