import Foundation
import TestSupport
import TestTraits
import Testing

/// The benchmarks run with the tests and so cannot rot; their measurements here mean nothing.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct BenchmarkCommandTests {
  @Test func smallWorkloadsRun() throws {
    let names = ["plist-encode", "plist-value-decode", "lock", "update", "defaults"]
    let result = try run(["--small", "--json"] + names)
    #expect(result.status == 0)
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == names.count)
    for line in lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
      let fields = try #require(object as? [String: Any])
      #expect(fields["ratio"] is Double && fields["machine"] is String)
      #expect(fields["size"] as? String == "small")
    }
  }

  /// Processes and pauses: on their own, because they take seconds.
  @Test(arguments: ["put-rare", "fan-out", "accesses-waiting", "backlog", "idle", "start"])
  func smallWorkloadsOfSeveralProcessesRun(_ name: String) throws {
    let result = try run(["--small", "--json", name])
    #expect(result.status == 0)
    #expect(result.output.contains(#""workload":"\#(name)""#))
  }

  /// Beside the systems that the machine has; the others are named as skipped.
  @Test(arguments: ["redis", "nats", "sqlite"])
  func otherSystemsAreMeasured(_ name: String) throws {
    let result = try run(["--small", "--json", "--compare", name])
    #expect(result.status == 0)
    guard !result.output.contains(#""workload":"\#(name)-"#) else { return }
    let what = "the workloads beside \(name)"
    // Where there is a server, it must be used.
    if name == "redis" { return skip(what, missing: "redis-server") }
    skip(what, because: "the machine does not have it")
  }

  @Test func aPictureIsDrawn() throws {
    let path = NSTemporaryDirectory() + "/plot-\(UUID().uuidString).svg"
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try run(["--small", "--plot", path, "plist-encode"]).status == 0)
    let picture = try String(contentsOfFile: path, encoding: .utf8)
    #expect(picture.hasPrefix("<svg") && picture.contains("plist-encode, small"))
    #expect(picture.hasSuffix("</svg>\n"))
    #expect(try run(["--plot"]).status == 64)
  }

  @Test func whatIsNotThereIsAUsageError() throws {
    #expect(try run(["nonsense"]).status == 64)
    #expect(try run(["--nonsense"]).status == 64)
    #expect(try run(["--help"]).output.contains("plist-encode"))
  }

  private func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let program = try #require(Self.program)
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
  }

  /// Built beside the tests, which may themselves run inside a helper of the toolchain's.
  private static let program: URL? = {
    let places =
      CommandLine.arguments.map { URL(filePath: $0) } + [Bundle.main.bundleURL]
    return places.lazy
      .map { $0.deletingLastPathComponent().appending(path: "wormhole-bench") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }()
}
