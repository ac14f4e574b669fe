import Glibc

/// What /proc tells of a process; for messages to people, nothing depends on it.
package struct ProcessStatus: Sendable {
  package let program: String
  package let isStopped: Bool
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
    isStopped = fields[0].first == UInt8(ascii: "T") || fields[0].first == UInt8(ascii: "t")
    self.started = started
  }
}

/// What tells this process from all others of the machine.
package struct ProcessIdentity: Sendable {
  package let process: Int32
  package let namespace: UInt64
  package let started: UInt64
  package let program: String
  package let seed: UInt64

  package static let current: ProcessIdentity = {
    let process = getpid()
    let status = ProcessStatus(of: process)
    var namespace = stat()
    let found = stat("/proc/self/ns/pid", &namespace) == 0
    return ProcessIdentity(
      process: process, namespace: found ? UInt64(namespace.st_ino) : 0,
      started: status?.started ?? 0, program: status?.program ?? "unknown",
      seed: .random(in: .min ... .max))
  }()
}

private func readSmallFile(_ path: String) -> [UInt8]? {
  guard let file = try? Descriptor.open(path: path, .readOnly) else { return nil }
  return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
    guard let count = try? file.read(into: buffer) else { return nil }
    return Array(buffer[..<count])
  }
}
