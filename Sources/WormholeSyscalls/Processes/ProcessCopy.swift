internal import Synchronization
internal import WormholeCLinux

/// The identity of this process among a process and all its forked children.
///
/// A process that is copied, by `fork` or by a bare clone(2), continues as two processes with the
/// same memory and the same open files. An object made before the copy belongs to the process that
/// made the object: the forked child may drop the object, and do nothing else with it. The check
/// costs no system call. A process that shares this process's memory, as after `vfork`, is not a
/// copy. In this package, a forked child is a copy made in either way.
package struct ProcessCopy: Equatable, Sendable {
  private let number: UInt32

  /// The identity of this process.
  package static var current: ProcessCopy { ProcessCopy(number: linux_copy_number()) }

  /// Whether this is the identity of the current process.
  package var isCurrent: Bool { number == linux_copy_number() }

  /// Whether this process is a forked child of a process that has used this library.
  ///
  /// A process that a schedule of system calls has forked counts as a process of its own: see
  /// ``isScheduled``.
  package static var isCopy: Bool { linux_copy_number() > 1 && !isScheduled }

  /// Whether a schedule decides the order of the system calls of this process, for a test.
  ///
  /// All threads of such a process are the package's own, so no task runs in it.
  package static var isScheduled: Bool {
    #if FAULT_POINTS
      turnstile_exists() != 0
    #else
      false
    #endif
  }
}

/// An object of which each process has its own, a forked child included.
package final class OneForEachProcess<Value: AnyObject & Sendable>: Sendable {
  /// The address of an entry; 0 as long as no entry exists.
  private let entry = Atomic<UInt>(0)
  private let make: @Sendable () -> Value

  /// - Parameter make: makes the object; several threads may call it at once, and all but one
  ///   result is dropped.
  package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

  /// The object of this process.
  ///
  /// A forked child leaves an inherited object as it is: the object's threads do not exist in the
  /// child, and its locks are taken.
  package var current: Value {
    let known = entry.load(ordering: .acquiring)
    if let value = Self.value(at: known) { return value }
    let fresh = Unmanaged.passRetained(EntryOfProcess(make()))
    let (isFirst, other) = entry.compareExchange(
      expected: known, desired: UInt(bitPattern: fresh.toOpaque()),
      ordering: .acquiringAndReleasing)
    let entry = isFirst ? fresh.takeUnretainedValue() : EntryOfProcess.at(other)!
    defer { if !isFirst { fresh.release() } }
    return unsafeDowncast(entry.value, to: Value.self)
  }

  /// The object of this process, if it was asked for before; nothing is made.
  package var existing: Value? { Self.value(at: entry.load(ordering: .acquiring)) }

  private static func value(at address: UInt) -> Value? {
    guard let found = EntryOfProcess.at(address), found.copy.isCurrent else { return nil }
    return unsafeDowncast(found.value, to: Value.self)
  }
}

/// The object of one process, and the process.
///
/// The class is not generic: the runtime would look up its type at each use, which takes ten times
/// as long as the use.
private final class EntryOfProcess: Sendable {
  let value: any AnyObject & Sendable
  let copy = ProcessCopy.current
  init(_ value: any AnyObject & Sendable) { self.value = value }

  static func at(_ address: UInt) -> EntryOfProcess? {
    guard let address = UnsafeRawPointer(bitPattern: address) else { return nil }
    return Unmanaged<EntryOfProcess>.fromOpaque(address).takeUnretainedValue()
  }
}
