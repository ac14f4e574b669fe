import WormholeLibC

/// The status of a process in /proc; for messages to people, no decision depends on it.
package struct ProcessStatus: Sendable {
  package let program: String
  package let isStopped: Bool
  /// Whether the process is about to end, as far as /proc shows; its files may still be open.
  package let isEnding: Bool
  /// Whether all threads have ended and only the process ID remains, until the parent process
  /// collects the exit status.
  package let hasEnded: Bool
  /// Ticks since boot: together with the process ID, the start identifies one process permanently.
  package let started: UInt64

  package init?(of process: Int32) {
    guard let text = readSmallFile("/proc/\(process)/stat"),
      let open = text.firstIndex(of: UInt8(ascii: "(")),
      let close = text.lastIndex(of: UInt8(ascii: ")")), open < close
    else { return nil }
    // The state (field 3) and numbers follow the name; the start is field 22.
    let fields = text[(close + 1)...].split(separator: UInt8(ascii: " "))
    guard fields.count > 19, let started = UInt64(String(decoding: fields[19], as: UTF8.self))
    else { return nil }
    program = String(decoding: text[(open + 1)..<close], as: UTF8.self)
    let state = fields[0].first
    isStopped = state == UInt8(ascii: "T") || state == UInt8(ascii: "t")
    let isZombie = state == UInt8(ascii: "Z") || state == UInt8(ascii: "X")
    // The first thread may have ended long before the others; the number of threads is field 20.
    hasEnded = isZombie && (Int(String(decoding: fields[17], as: UTF8.self)) ?? 0) <= 1
    // Field 9 has the kernel's flags, among them one for an exiting process; field 31 has the
    // signals that the process has not handled yet, possibly SIGKILL.
    let flags = Int(String(decoding: fields[6], as: UTF8.self)) ?? 0
    let pending = fields.count > 28 ? Int(String(decoding: fields[28], as: UTF8.self)) ?? 0 : 0
    isEnding = isZombie || flags & 0x4 != 0 || pending & 1 << (SIGKILL - 1) != 0
    self.started = Self.withoutOffset(started)
  }

  /// Subtracts the time namespace's offset, which the kernel adds to the start too.
  private static func withoutOffset(_ ticks: UInt64) -> UInt64 {
    let offset = Clocks.bootOffset / (1_000_000_000 / Int64(sysconf(CInt(_SC_CLK_TCK))))
    return ticks &- UInt64(bitPattern: offset)
  }

  /// Returns whether the process started at that tick.
  ///
  /// In a time namespace the kernel rounds after adding the offset, so a difference of one tick
  /// counts as equal; within so short a time no process ID is reused.
  package func started(at ticks: UInt64) -> Bool {
    started == ticks || started &- ticks == 1 || ticks &- started == 1
  }
}

/// The identity of this process, unique among all processes of the host.
package struct ProcessIdentity: Sendable {
  package let process: Int32
  package let namespace: UInt64
  package let started: UInt64
  package let program: String
  package let seed: UInt64

  /// A class, because a forked child has another identity.
  private final class Own: Sendable {
    let identity = Monitor(ProcessIdentity.find(seed: SystemRandom.number()))
  }

  private static let own = OneForEachProcess { Own() }

  package static var current: ProcessIdentity {
    own.current.identity.withLock { identity in
      if !identity.isWhole { identity = find(seed: identity.seed) }
      return identity
    }
  }

  /// Whether `/proc` has reported everything, or is missing; otherwise `/proc` could not be read
  /// for a moment, for example for lack of descriptors.
  package var isWhole: Bool { started != 0 || namespace == 0 }

  private static func find(seed: UInt64) -> ProcessIdentity {
    let process = getpid()
    let status = ProcessStatus(of: process)
    var namespace = stat()
    let found = stat("/proc/self/ns/pid", &namespace) == 0
    return ProcessIdentity(
      process: process, namespace: found ? UInt64(namespace.st_ino) : 0,
      started: status?.started ?? 0, program: status?.program ?? "unknown", seed: seed)
  }
}

func readSmallFile(_ path: String) -> [UInt8]? {
  guard let file = try? Descriptor.open(path: path, .readOnly) else { return nil }
  return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
    guard let count = try? file.read(into: buffer) else { return nil }
    return Array(buffer[..<count])
  }
}
