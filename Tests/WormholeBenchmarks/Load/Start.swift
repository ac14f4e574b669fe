import Foundation
import Wormhole
import WormholeSyscalls

/// The command `wormhole get` as a whole process, against a C program that makes the same calls.
///
/// Without `--command PATH`, the command in the directory of this program is measured. A statically
/// linked command starts in a fraction of the time.
struct Start: Benchmark {
  static let isGated = false
  static let name = "start"
  static let summary = "the command that reads a value, as a whole process, against a C program"

  private static let value = "eighty-eight"

  private let scratch: Scratch
  private let container: String
  private let command: [String]
  private let floor: [String]

  init(size: Size) throws {
    scratch = try Scratch()
    container = scratch.path + "/holes"
    _ = try SharedContainer(directory: container).channel("speed", of: String.self)
      .put(Self.value)
    command = [try Self.copy(Self.measured(), to: scratch.path + "/command"), "get", "speed"]
    let compiled = try Self.compile(to: scratch.path + "/linked")
    floor = [
      try Self.copy(compiled, to: scratch.path + "/floor"), container, "speed", Self.value,
    ]
    for words in [command, floor] { try check(words) }
    for _ in 0..<3 { try ours() }
  }

  func ours() throws { try run(command) }
  func baseline() throws { try run(floor) }
  var conditions: String? {
    (try? Self.measured()).map { "a C program that makes the calls of the command at \($0)" }
  }

  func details() throws -> [Detail] {
    let nothing = try Measurement.measure(for: .milliseconds(200)) { try run(["/bin/true"]) }
    return [Detail("a program that does nothing, us", nothing.median / 1000)]
  }

  /// Returns the path of the measured command.
  private static func measured() throws -> String {
    let arguments = CommandLine.arguments
    if let index = arguments.firstIndex(of: Options.command), index + 1 < arguments.count {
      return arguments[index + 1]
    }
    let own = URL(fileURLWithPath: Bundle.main.executablePath ?? arguments[0])
    let built = own.deletingLastPathComponent().appendingPathComponent("wormhole").path
    guard FileManager.default.isExecutableFile(atPath: built) else {
      throw BenchmarkError.nothingMeasured("\(name): build the product 'wormhole' too")
    }
    return built
  }

  /// Copies a program, as an installation does, and returns the path of the copy.
  ///
  /// The kernel maps the pages of a file one by one if a linker has just written the file: the
  /// program starts half as fast.
  private static func copy(_ program: String, to path: String) throws -> String {
    let source = URL(fileURLWithPath: program).resolvingSymlinksInPath().path
    try FileManager.default.copyItem(atPath: source, toPath: path)
    return path
  }

  /// Compiles the C program of `.ci/start-time`, and returns its path.
  private static func compile(to path: String) throws -> String {
    let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { folder, _ in
      folder.deletingLastPathComponent()
    }
    let source = root.appendingPathComponent(".ci/start.c").path
    guard FileManager.default.fileExists(atPath: source) else {
      throw BenchmarkError.absent(source)
    }
    let compiler = try (try? Machine.program("cc")) ?? Machine.program("clang")
    let child = try Child.spawn(compiler, ["-O2", "-o", path, source])
    guard try child.wait() == .exited(0) else {
      throw BenchmarkError.floor("\(source) does not compile")
    }
    return path
  }

  /// Runs a program, which must print the value.
  private func check(_ words: [String]) throws {
    let output = try WormholeSyscalls.Pipe()
    try run(words, output: output.writing.rawValue)
    // If the program has printed nothing, the read gets this byte and does not wait.
    try output.writing.writeFully([0])
    let printed = try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      Array(buffer[..<(try output.reading.read(into: buffer))])
    }
    guard printed == Array((Self.value + "\n\0").utf8) else {
      throw BenchmarkError.wrongResult("\(Self.name): the output of \(words[0])")
    }
  }

  private func run(_ words: [String]) throws {
    let output = try WormholeSyscalls.Pipe()
    try run(words, output: output.writing.rawValue)
  }

  private func run(_ words: [String], output: CInt) throws {
    let child = try Child.spawn(
      words[0], Array(words.dropFirst()),
      environment: Processes.environment(
        setting: ["WORMHOLE_CONTAINER=\(container)"], without: ["WORMHOLE_GROUP"]),
      output: output)
    guard try child.wait() == .exited(0) else { throw BenchmarkError.wrongResult(Self.name) }
  }
}
