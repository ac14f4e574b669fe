import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// The programs in README and in the articles, compiled as users compile them: in both language
/// modes, with `main.swift` and with `@main`, with warnings as errors.
///
/// The compiler is called directly, with the modules that were built with the tests: a second
/// for each program.
@Suite(.blocking, .notSanitized("it runs a compiler")) struct ProgramTests {
  /// How a program begins, and the language mode.
  struct Form: Sendable, CustomStringConvertible {
    let hasMainFile: Bool
    let mode: Int
    var description: String { (hasMainFile ? "main.swift" : "@main") + ", Swift \(mode)" }

    static var all: [Form] {
      let all = [5, 6].flatMap { mode in
        [true, false].map { Form(hasMainFile: $0, mode: mode) }
      }
      // The package itself compiles the programs in Swift 6 mode.
      return TestRun.isLong ? all : all.filter { $0.mode == 5 || $0.hasMainFile }
    }
  }

  @Test(arguments: Form.all) func theServiceEndsInOrderOnASignal(_ form: Form) throws {
    let home = try TemporaryDirectory()
    let text = try Self.source(of: "ServiceProgram")
    guard let program = try compile(text, as: "service", form, in: home) else { return }
    let container = home.path + "/jobs.container"
    for signal in [Processes.Signal.terminate, .interrupt] {
      let service = try start(program, in: home)
      let queue = try SharedContainer(directory: container).queue("jobs", of: Job.self)
      try queue.send(Job(number: 1))
      try eventually("the job is handled") { try service.output == "job 1\n" }
      try service.child.send(signal)
      let outcome = try service.outcome()
      #expect(outcome.status == .exited(0), "\(form): \(outcome.errors)")
      #expect(outcome.output == "job 1\nended in order\n")
      #expect(try queue.messages.isEmpty)
    }
  }

  @Test(
    arguments: [
      ("README.md", "cinema", "ReadmeProgram"),
      (Readme.catalogue + "/GettingStarted.md", "cinema", "FirstProgram"),
      (Readme.catalogue + "/Configuration.md", "server", "ConfigurationProgram"),
    ], Form.all)
  func theProgramDoesWhatIsShown(_ page: (String, String, String), _ form: Form) throws {
    let (page, name, program) = page
    let home = try TemporaryDirectory()
    guard try compile(Self.source(of: program), as: name, form, in: home) != nil else { return }
    _ = try Readme(page).session("program").run(
      in: home.path, programs: "\(home.path):\(Programs.built)",
      replacing: ["swift run \(name)": name])
  }

  @Test func aSecondSignalEndsTheProcess() throws {
    let home = try TemporaryDirectory()
    let text = """
      import Wormhole
      try await runService {
        print("begun")
        while !Task.isCancelled { await Task.yield() }
        print("asked")
        while true { await Task.yield() }
      }
      """
    let form = Form(hasMainFile: true, mode: 6)
    guard let program = try compile(text, as: "service", form, in: home) else { return }
    let service = try start(program, in: home)
    try eventually("the service has begun") { try service.output == "begun\n" }
    try service.child.send(.terminate)
    try eventually("the service is asked to end") { try service.output == "begun\nasked\n" }
    try service.child.send(.terminate)
    #expect(try service.outcome().status == .signalled(Processes.Signal.terminate.number))
  }

  private struct Job: Codable { var number: Int }

  /// Starts a program whose output is written line by line.
  private func start(_ program: String, in home: TemporaryDirectory) throws -> Running {
    try Running("sh", ["-c", "cd '\(home.path)' && exec stdbuf -oL '\(program)'"])
  }

  private static func source(of folder: String) throws -> String {
    let directory = try Descriptor.open(
      path: "\(Programs.source)/Tests/\(folder)", [.readOnly, .directory])
    let file = try #require(directory.names().first { $0.hasSuffix(".swift") })
    return String(decoding: try directory.open(file, [.readOnly]).contents(), as: UTF8.self)
  }

  /// Compiles a program; nil if the machine has no compiler.
  private func compile(
    _ text: String, as name: String, _ form: Form, in home: TemporaryDirectory
  ) throws -> String? {
    guard let compiler = Programs.installed("swiftc") else {
      skip("the programs of the articles", missing: "swiftc")
      return nil
    }
    let source = form.hasMainFile ? "main.swift" : "Program.swift"
    try home.write(form.hasMainFile ? Self.withMainFile(text) : Self.withType(text), to: source)
    let built = Programs.built
    let maps = ["WormholeCLinux", "WormholeCChecksum"].map {
      "-Xcc '-fmodule-map-file=\(built)/\($0).build/module.modulemap'"
    }.joined(separator: " ")
    // The objects of a program that was built with the tests, without its own: a folder of objects
    // may hold some of files that are gone.
    let list = try Descriptor.open(
      path: "\(built)/ReadmeProgram.product/Objects.LinkFileList", [.readOnly])
    let objects = String(decoding: try list.contents(), as: UTF8.self).split(separator: "\n")
      .filter { !$0.contains("ReadmeProgram.build") }
    try home.write(objects.joined(separator: "\n") + "\n", to: "objects")
    let program = "\(home.path)/\(name)"
    let outcome = try run(
      "sh",
      [
        "-c",
        "'\(compiler)' -swift-version \(form.mode) -warnings-as-errors"
          + " -I '\(built)/Modules' \(maps)" + (form.hasMainFile ? "" : " -parse-as-library")
          + " '\(home.path)/\(source)' '@\(home.path)/objects' -o '\(program)'",
      ], within: .seconds(300))
    try #require(outcome.status == .exited(0), "\(form): \(outcome.output)\(outcome.errors)")
    return program
  }

  /// The statements of a program in the function of a type marked `@main`.
  private static func withType(_ text: String) -> String {
    if text.contains("@main ") { return text }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let imports = lines.filter { $0.hasPrefix("import ") }
    let others = lines.filter { !$0.hasPrefix("import ") }
    return
      (imports + ["@main struct Program {", "static func main() async throws {"] + others
      + ["}", "}"]).joined(separator: "\n") + "\n"
  }

  /// A program that calls the function of its type in the file `main.swift`.
  private static func withMainFile(_ text: String) -> String {
    guard let mark = text.firstRange(of: "@main ") else { return text }
    let type = text[mark.upperBound...].split(separator: " ")[1]
    return text.replacing("@main ", with: "") + "\ntry await \(type).main()\n"
  }
}
