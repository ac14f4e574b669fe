internal import CLinux
internal import Synchronization

/// Which process this is, of a process and all copies that were made of it.
///
/// A process that is copied, by `fork` or by a bare clone(2), goes on twice with the same memory
/// and the same open files. What was made before is the affair of the one that has made it: the
/// other one may drop it, and do nothing else with it. To ask costs no system call. What shares
/// this process's memory, as after `vfork`, is no copy.
package struct ProcessCopy: Equatable, Sendable {
  private let number: UInt32

  /// This one.
  package static var current: ProcessCopy { ProcessCopy(number: linux_copy_number()) }

  /// Whether it is this one.
  package var isCurrent: Bool { number == linux_copy_number() }

  /// Whether this process is a copy of one that has used this library.
  package static var isCopy: Bool { linux_copy_number() > 1 }

  /// Goes on as where the kernel has no memory that it wipes in copies; for tests.
  package static func numberByHand() { linux_number_copies_by_hand() }
}

/// Something of which each process has one, and a copy of a process one of its own.
package final class OneForEachProcess<Value: AnyObject & Sendable>: Sendable {
  private final class Entry: Sendable {
    let value: Value
    let copy = ProcessCopy.current
    init(_ value: Value) { self.value = value }
  }

  /// The address of an entry; 0 as long as there is none.
  private let entry = Atomic<UInt>(0)
  private let make: @Sendable () -> Value

  /// - Parameter make: may be called by several threads at once, and all but one result is dropped.
  package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

  /// That of this process.
  ///
  /// What a copy has inherited it leaves as it lies: its threads are gone, and its locks taken.
  package var current: Value {
    let known = entry.load(ordering: .acquiring)
    if let found = Self.entry(at: known), found.copy.isCurrent { return found.value }
    let fresh = Unmanaged.passRetained(Entry(make()))
    let (isFirst, other) = entry.compareExchange(
      expected: known, desired: UInt(bitPattern: fresh.toOpaque()),
      ordering: .acquiringAndReleasing)
    if isFirst { return fresh.takeUnretainedValue().value }
    fresh.release()
    return Self.entry(at: other)!.value
  }

  private static func entry(at address: UInt) -> Entry? {
    UnsafeRawPointer(bitPattern: address).map {
      Unmanaged<Entry>.fromOpaque($0).takeUnretainedValue()
    }
  }
}
