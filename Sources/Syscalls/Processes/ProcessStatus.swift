import Glibc

/// What /proc tells of a process; for messages to people, nothing depends on it.
package struct ProcessStatus: Sendable {
  package let program: String
  package let isStopped: Bool
  /// Whether it is about to end, as far as can be seen; its files may be open still.
  package let isEnding: Bool
  /// Whether all of it has ended, and only its number is left, for whoever is to ask how it ended.
  package let hasEnded: Bool
  /// Ticks since boot: with the number, it names one process for good.
  package let started: UInt64

  package init?(of process: Int32) {
    guard let text = readSmallFile("/proc/\(process)/stat"),
      let open = text.firstIndex(of: UInt8(ascii: "(")),
      let close = text.lastIndex(of: UInt8(ascii: ")")), open < close
    else { return nil }
    // After the name come the state (field 3) and numbers; the start is field 22.
    let fields = text[(close + 1)...].split(separator: UInt8(ascii: " "))
    guard fields.count > 19, let started = UInt64(String(decoding: fields[19], as: UTF8.self))
    else { return nil }
    program = String(decoding: text[(open + 1)..<close], as: UTF8.self)
    let state = fields[0].first
    isStopped = state == UInt8(ascii: "T") || state == UInt8(ascii: "t")
    let isZombie = state == UInt8(ascii: "Z") || state == UInt8(ascii: "X")
    // Its first thread may have ended long before the others; their number is field 20.
    hasEnded = isZombie && (Int(String(decoding: fields[17], as: UTF8.self)) ?? 0) <= 1
    // Field 9 has the kernel's flags, of which one says that it is exiting; field 31 the signals
    // that it has not come to yet, of which SIGKILL may be one.
    let flags = Int(String(decoding: fields[6], as: UTF8.self)) ?? 0
    let pending = fields.count > 28 ? Int(String(decoding: fields[28], as: UTF8.self)) ?? 0 : 0
    isEnding = isZombie || flags & 0x4 != 0 || pending & 1 << (SIGKILL - 1) != 0
    self.started = Self.withoutOffset(started)
  }

  /// The kernel adds the time namespace's offset to the start too.
  private static func withoutOffset(_ ticks: UInt64) -> UInt64 {
    let offset = Clocks.bootOffset / (1_000_000_000 / Int64(sysconf(CInt(_SC_CLK_TCK))))
    return ticks &- UInt64(bitPattern: offset)
  }

  /// Whether the process started then.
  ///
  /// In a time namespace the kernel rounds after adding the offset, so a tick more or less is the
  /// same; in so short a time no number comes back.
  package func started(at ticks: UInt64) -> Bool {
    started == ticks || started &- ticks == 1 || ticks &- started == 1
  }
}

/// What tells this process from all others of the machine.
package struct ProcessIdentity: Sendable {
  package let process: Int32
  package let namespace: UInt64
  package let started: UInt64
  package let program: String
  package let seed: UInt64

  /// A class, as copies of the process have another.
  private final class Own: Sendable {
    let identity = Monitor(ProcessIdentity.find(seed: .random(in: .min ... .max)))
  }

  private static let own = OneForEachProcess { Own() }

  package static var current: ProcessIdentity {
    own.current.identity.withLock { identity in
      if !identity.isWhole { identity = find(seed: identity.seed) }
      return identity
    }
  }

  /// Whether `/proc` has told all, or is missing; else it could not be read for a moment, for lack
  /// of descriptors say.
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
