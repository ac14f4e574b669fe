import Foundation
import Wormhole
import WormholeSyscalls

/// The command `wormhole get` as a whole process, against `true`.
struct Start: Benchmark {
  static let isGated = false
  static let name = "start"
  static let summary = "the command that reads a value, as a whole process, against 'true'"

  private let scratch: Scratch
  private let command: String

  init(size: Size) throws {
    scratch = try Scratch()
    // Built beside this program.
    let own = URL(fileURLWithPath: Bundle.main.executablePath ?? CommandLine.arguments[0])
    command = own.deletingLastPathComponent().appendingPathComponent("wormhole").path
    guard FileManager.default.isExecutableFile(atPath: command) else {
      throw BenchmarkError.nothingMeasured("\(Self.name): build the product 'wormhole' too")
    }
    _ = try SharedContainer(directory: scratch.path + "/holes").channel("speed", of: Int.self)
      .put(1)
    for _ in 0..<3 { try ours() }
  }

  func ours() throws { try run(command, ["get", "speed"]) }
  func baseline() throws { try run("/bin/true", []) }

  private func run(_ program: String, _ arguments: [String]) throws {
    let output = try WormholeSyscalls.Pipe()
    let child = try Child.spawn(
      program, arguments,
      environment: Processes.environment(setting: ["WORMHOLE_CONTAINER=\(scratch.path)/holes"]),
      output: output.writing.rawValue)
    guard try child.wait() == .exited(0) else { throw BenchmarkError.wrongResult(Self.name) }
  }
}
