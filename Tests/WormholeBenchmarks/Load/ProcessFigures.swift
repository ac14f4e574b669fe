import Foundation

/// The kernel's figures of a process, from `/proc`.
enum ProcessFigures {
  /// The peak of this process's memory.
  static func peakKilobytes() throws -> Int { try field("VmHWM", of: "/proc/self/status") }

  /// The present memory of a process.
  static func kilobytes(of process: Int32) throws -> Int {
    try field("VmRSS", of: "/proc/\(process)/status")
  }

  /// How often the threads of a process have been waiting and were woken.
  static func wakes(of process: Int32) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task").reduce(0) {
      // A thread may have ended since the listing.
      $0
        + ((try? field(
          "voluntary_ctxt_switches", of: "/proc/\(process)/task/\($1)/status")) ?? 0)
    }
  }

  /// The processor time of a process, in nanoseconds.
  static func time(of process: Int32) throws -> Double {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task").reduce(0) {
      let text = try? String(
        contentsOfFile: "/proc/\(process)/task/\($1)/schedstat", encoding: .utf8)
      return $0 + (text?.split(separator: " ").first.flatMap { Double($0) } ?? 0)
    }
  }

  private static func field(_ name: String, of path: String) throws -> Int {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
    guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
      let value = Int(number)
    else { throw BenchmarkError.nothingMeasured(path) }
    return value
  }
}
