import Foundation
import WormholeSyscalls

/// The host of the measurement.
enum Machine {
  /// Returns the path of a program that the variable names, or that PATH has.
  ///
  /// - Throws: ``BenchmarkError/absent(_:)`` if the host does not have the program.
  static func program(_ name: String, variable: String? = nil) throws -> String {
    if let variable, let given = Processes.environment(variable), !given.isEmpty { return given }
    let folders = (Processes.environment("PATH") ?? "").split(separator: ":")
    let found = folders.map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
    guard let found else { throw BenchmarkError.absent(name) }
    return found
  }

  /// The line that describes the host.
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
