import Foundation

/// The line that describes the host of the measurement.
enum Machine {
  static var line: String {
    let process = ProcessInfo.processInfo
    #if DEBUG
      let build = "debug build, figures mean nothing"
    #else
      let build = "release build"
    #endif
    return "\(model), \(process.activeProcessorCount) cores, \(kernel), \(build)"
  }

  private static var model: String {
    let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("model name") }
    let name = line?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
    return name ?? "unknown processor"
  }

  private static var kernel: String {
    let text = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
    return "Linux " + text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
