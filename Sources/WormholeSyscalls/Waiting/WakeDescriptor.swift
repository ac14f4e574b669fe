import WormholeLibC
internal import WormholeCLinux

/// A descriptor that one thread raises to wake another thread from a ``WaitSet``.
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
    _ = withUnsafeBytes(of: &one) { WormholeLibC.write(number, $0.baseAddress, 8) }
    #if FAULT_POINTS
      turnstile_changed()
    #endif
  }

  /// Makes a raised descriptor unreadable again.
  package func lower() {
    guard let number = try? descriptor.number else { return }
    var count: UInt64 = 0
    _ = withUnsafeMutableBytes(of: &count) { WormholeLibC.read(number, $0.baseAddress, 8) }
  }
}
