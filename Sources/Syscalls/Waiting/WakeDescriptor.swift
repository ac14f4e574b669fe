internal import CLinux
import Glibc

/// A descriptor that one thread raises to wake another thread from
/// ``waitUntilReadable(_:_:until:)``, or from a ``WaitSet``.
package struct WakeDescriptor: ~Copyable, Sendable {
  package let descriptor: Descriptor

  package init() throws(Errno) {
    descriptor = Descriptor(adopting: try perform(.eventfd) { linux_eventfd() })
  }

  /// Wakes the current waiter, or the next one.
  ///
  /// A second raise before the wake-up changes nothing.
  package func raise() {
    guard let number = try? descriptor.number else { return }
    var one: UInt64 = 1
    // The write fails only when the counter is full, and a full counter counts as raised.
    _ = withUnsafeBytes(of: &one) { Glibc.write(number, $0.baseAddress, 8) }
  }

  /// Makes a raised descriptor unreadable again.
  package func lower() {
    guard let number = try? descriptor.number else { return }
    var count: UInt64 = 0
    _ = withUnsafeMutableBytes(of: &count) { Glibc.read(number, $0.baseAddress, 8) }
  }
}

/// Waits until one of two descriptors is readable or the deadline has passed.
///
/// If both results are false, the deadline has passed, or a signal arrived: the caller checks
/// again.
package func waitUntilReadable(
  _ first: borrowing Descriptor, _ second: borrowing Descriptor, until deadline: Instant?
) throws(Errno) -> (first: Bool, second: Bool) {
  var entries = (
    pollfd(fd: try first.number, events: Int16(POLLIN), revents: 0),
    pollfd(fd: try second.number, events: Int16(POLLIN), revents: 0)
  )
  do {
    _ = try perform(.poll, retrying: false) {
      withUnsafeMutablePointer(to: &entries) { pointer in
        pointer.withMemoryRebound(to: pollfd.self, capacity: 2) {
          Glibc.poll($0, 2, millisecondsLeft(until: deadline))
        }
      }
    }
  } catch {
    if error == .interrupted { return (false, false) }
    throw error
  }
  return (entries.0.revents != 0, entries.1.revents != 0)
}

/// Returns the remaining time, rounded up, so that a wait never ends before its deadline.
func millisecondsLeft(until deadline: Instant?) -> CInt {
  guard let deadline else { return -1 }
  let left = deadline.nanoseconds - Instant.now.nanoseconds
  return left <= 0 ? 0 : CInt(clamping: (left + 999_999) / 1_000_000)
}

/// The two ends of a pipe, both closed on exec.
package struct Pipe: ~Copyable, Sendable {
  package let reading: Descriptor
  package let writing: Descriptor

  package init() throws(Errno) {
    var ends: [CInt] = [-1, -1]
    _ = try perform(.pipe) { linux_pipe(&ends) }
    reading = Descriptor(adopting: ends[0])
    writing = Descriptor(adopting: ends[1])
  }
}
