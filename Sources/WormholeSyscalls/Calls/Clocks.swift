import WormholeLibC
#if FAULT_POINTS
  internal import WormholeCLinux
#endif

/// A moment on the monotonic clock, which stops while the host sleeps.
public struct Instant: Comparable, Hashable, Sendable {
  @usableFromInline package var nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static var now: Instant { Instant(nanoseconds: read(CLOCK_MONOTONIC)) }

  /// Returns whether the left instant precedes the right instant.
  @inlinable public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  package static func + (left: Instant, right: Duration) -> Instant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.inNanoseconds)
    return Instant(nanoseconds: overflow ? .max : sum)
  }

  /// Clamps the difference as well: a deadline may be as far in the past as an `Instant` can hold.
  package static func - (left: Instant, right: Instant) -> Duration {
    let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
    return .nanoseconds(overflow ? (left < right ? .min : .max) : difference)
  }
}

extension Duration {
  /// The duration in nanoseconds, clamped to the range of 64 bits: 292 years.
  package var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, carried) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow || carried ? (seconds < 0 ? .min : .max) : sum
  }
}

package enum Clocks {
  /// Nanoseconds since the host started, including the time that the host slept.
  ///
  /// The value is the same for all processes, and never decreases while the host runs.
  package static var sinceBoot: Int64 { read(CLOCK_BOOTTIME) - bootOffset }

  /// The nanoseconds that the kernel adds to the time since boot for this process, because the
  /// process is in a time namespace.
  ///
  /// Read once: a process stays in the same time namespace until it ends, unless the process
  /// changes its namespace itself. If `/proc` does not contain the offset, the value is 0.
  package static let bootOffset: Int64 = {
    var namespace = stat()
    // Most processes are in the initial namespace, which has this inode number in every kernel, and
    // no offset.
    guard stat("/proc/self/ns/time", &namespace) == 0, namespace.st_ino != 0xefff_fffa,
      let text = readSmallFile("/proc/self/timens_offsets")
    else { return 0 }
    return bootOffset(in: String(decoding: text, as: UTF8.self)) ?? 0
  }()

  /// Parses lines that contain a clock's name, seconds, and nanoseconds to add to the seconds.
  static func bootOffset(in offsets: String) -> Int64? {
    for line in offsets.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count == 3, fields[0] == "boottime", let seconds = Int64(fields[1]),
        let nanoseconds = Int64(fields[2])
      else { continue }
      let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
      let (sum, carried) = whole.addingReportingOverflow(nanoseconds)
      return overflow || carried ? nil : sum
    }
    return nil
  }

  /// Nanoseconds since 1970, by the host's clock, which may be wrong.
  package static var sinceEpoch: Int64 { read(CLOCK_REALTIME) }
}

private func read(_ clock: clockid_t) -> Int64 {
  #if FAULT_POINTS
    if turnstile_plays() != 0 { return turnstile_clock(clock == CLOCK_REALTIME ? 1 : 0) }
  #endif
  var time = timespec()
  let result = clock_gettime(clock, &time)
  precondition(result == 0, "the clock \(clock) cannot be read")
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension Clocks {
  /// The kernel's identifier of this boot of the host; empty if the kernel gives none.
  package static var bootIdentifier: String {
    guard let file = try? Descriptor.open(path: "/proc/sys/kernel/random/boot_id", .readOnly)
    else { return "" }
    let bytes = withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
      Array(buffer[..<((try? file.readFully(into: buffer)) ?? 0)])
    }
    return String(decoding: bytes.filter { $0 > UInt8(ascii: " ") }, as: UTF8.self)
  }
}

extension Instant {
  package static let distantFuture = Instant(nanoseconds: .max)
}
