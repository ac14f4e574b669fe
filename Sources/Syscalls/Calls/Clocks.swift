import Glibc

/// A moment on the monotonic clock, which stands still while the machine sleeps.
public struct Instant: Comparable, Hashable, Sendable {
  @usableFromInline package var nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static var now: Instant { Instant(nanoseconds: read(CLOCK_MONOTONIC)) }

  /// Whether one comes before the other.
  @inlinable public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  package static func + (left: Instant, right: Duration) -> Instant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.inNanoseconds)
    return Instant(nanoseconds: overflow ? .max : sum)
  }

  /// Clamped as well: a deadline may lie as far back as can be said.
  package static func - (left: Instant, right: Instant) -> Duration {
    let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(right.nanoseconds)
    return .nanoseconds(overflow ? (left < right ? .min : .max) : difference)
  }
}

extension Duration {
  /// Clamped to what 64 bits hold: 292 years.
  package var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, carried) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow || carried ? (seconds < 0 ? .min : .max) : sum
  }
}

package enum Clocks {
  /// Nanoseconds since the machine started, its sleep included: the same for all processes, and
  /// never going back while the machine runs.
  package static var sinceBoot: Int64 { read(CLOCK_BOOTTIME) - bootOffset }

  /// How many nanoseconds the kernel adds to what it tells this process of the time since boot,
  /// because it is in a time namespace.
  ///
  /// Asked for once: a process is in the same one for all of its life, but for those that change it
  /// themselves. Where `/proc` does not tell, it is taken for 0.
  package static let bootOffset: Int64 = {
    var namespace = stat()
    // Most are in the first one, which has this number in every kernel, and no offset.
    guard stat("/proc/self/ns/time", &namespace) == 0, namespace.st_ino != 0xefff_fffa,
      let text = readSmallFile("/proc/self/timens_offsets")
    else { return 0 }
    return bootOffset(in: String(decoding: text, as: UTF8.self)) ?? 0
  }()

  /// Reads lines of a clock's name, seconds, and the nanoseconds that are added to those.
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

  /// Nanoseconds since 1970, as far as anybody knows.
  package static var sinceEpoch: Int64 { read(CLOCK_REALTIME) }

  /// Nanoseconds that processors have worked for this process, with all of its threads.
  package static var ofProcess: Int64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  /// The same for the thread that asks.
  package static var ofThread: Int64 { read(CLOCK_THREAD_CPUTIME_ID) }
}

private func read(_ clock: clockid_t) -> Int64 {
  var time = timespec()
  let result = clock_gettime(clock, &time)
  precondition(result == 0, "the clock \(clock) cannot be read")
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension Clocks {
  /// The kernel's name for this run of the machine; empty where it gives none.
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
