import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeStress

/// The program as a whole: without a fault it finds no violation; with a fault it finds a
/// violation, and finds it again from the printed line.
@Suite(.blocking, .notSanitized("about what a command prints")) struct StressTests {
  private func stress(_ arguments: [String], in folder: TemporaryDirectory) throws -> ProcessOutcome
  {
    try TestSupport.run(
      Programs.built("wormhole-stress"), arguments, environment: ["TMPDIR=\(folder.path)"])
  }

  /// One run of everything, then channels, messages and accesses to files in one run each.
  @Test(arguments: [3, 4, 5, 12])
  func allPromisesAreKept(_ seed: Int) throws {
    let folder = try TemporaryDirectory()
    let result = try stress(["--seed", "\(seed)", "--duration", "1"], in: folder)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    #expect(result.output.contains("seed \(seed): "))
  }

  private static let mutants = [
    ("no-removal", 4, ["lost", "order"]), ("read-before-claim", 5, ["twice"]),
    ("keep-hidden", 12, ["lost", "order"]),
  ]

  /// Seed 4 is about channels, 5 about messages, 12 about accesses: all of them in a long run.
  @Test(arguments: TestRun.isLong ? mutants : Array(mutants.prefix(1)))
  func aMechanismThatIsTakenOutIsMissed(
    _ mutant: String, _ seed: Int, _ kinds: [String]
  ) throws {
    let folder = try TemporaryDirectory()
    let begun = ["run", "--seed", "\(seed)", "--mutant", mutant, "--duration", "3"]
    let line = try findings(begun, kinds, in: folder)
    let words = line.split(separator: " ").map(String.init)
    let begin = try #require(words.firstIndex(of: "run"))
    _ = try findings(Array(words[begin...]), kinds, in: folder)
  }

  /// Runs until a promise of the given kinds is broken, because the machine decides when exactly a
  /// fault hits which process.
  ///
  /// - Returns: the line that repeats the run.
  private func findings(
    _ arguments: [String], _ kinds: [String], in folder: TemporaryDirectory
  ) throws -> Substring {
    for _ in 0..<40 {
      let result = try stress(arguments, in: folder)
      guard result.status == .exited(1) else { continue }
      let found = result.output.split(separator: "\n").filter { line in
        kinds.contains { line.hasPrefix("  \($0): ") }
      }
      if found.isEmpty { continue }
      return try #require(result.errors.split(separator: "\n").first { $0.contains("again: ") })
    }
    throw NothingFound(arguments: arguments)
  }

  private struct NothingFound: Error {
    let arguments: [String]
  }

  @Test func whoeverKillsTheProgramEndsItsProcesses() throws {
    let folder = try TemporaryDirectory()
    let program = try Running(
      Programs.built("wormhole-stress"), ["--seed", "3", "--duration", "3600", "--no-faults"],
      environment: ["TMPDIR=\(folder.path)"])
    try eventually("it has workers") { try Self.workers(in: folder).count >= 2 }
    try program.child.send(.kill)
    try eventually("its workers have ended", within: .seconds(300)) {
      try Self.workers(in: folder).isEmpty
    }
  }

  @Test(arguments: ["users", "pids", "tmpfs"]) func elsewhereAllPromisesAreKept(_ kind: String)
    throws
  {
    let folder = try TemporaryDirectory()
    let result = try stress(
      ["run", "--seed", "3", "--duration", "1", "--on", kind], in: folder)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    let skipped = result.errors.contains("SKIPPED: the stress on \(kind): ")
    #expect(skipped || result.output.contains("\(kind): seed 3: "), "\(result.errors)")
    #expect(try folder.descriptor.names() == [])
    if skipped { skip("the stress on \(kind)", because: result.errors) }
  }

  @Test func whatIsMountedGoesWithTheProgram() throws {
    let folder = try TemporaryDirectory()
    let program = try Running(
      Programs.built("wormhole-stress"), ["run", "--on", "fuse,tmpfs", "--duration", "60"],
      environment: ["TMPDIR=\(folder.path)"])
    try eventually("it has workers, or cannot mount anything") {
      try Self.workers(in: folder).count >= 2 || program.errors.contains("SKIPPED: ")
    }
    if try Self.workers(in: folder).isEmpty {
      skip("mounts of the stress", because: "none can be made")
    }
    try? program.child.send(.kill)  // Where nothing can be mounted it has ended by itself.
    try eventually("its processes have ended") { try Self.users(of: folder).isEmpty }
    let mounts = try Descriptor.open(path: "/proc/self/mounts", [.readOnly]).contents()
    #expect(!String(decoding: mounts, as: UTF8.self).contains(folder.path))
  }

  /// The workers on a directory in the folder.
  private static func workers(in folder: TemporaryDirectory) throws -> [Int32] {
    try users(of: folder) { $0.contains("--worker") }
  }

  /// The processes whose command line names the folder.
  private static func users(
    of folder: TemporaryDirectory, _ isWanted: (String) -> Bool = { _ in true }
  ) throws -> [Int32] {
    try Descriptor.open(path: "/proc", [.readOnly, .directory]).names().compactMap { Int32($0) }
      .filter { process in
        // It may be gone.
        let file = try? Descriptor.open(path: "/proc/\(process)/cmdline", [.readOnly])
        let line = String(decoding: (try? file?.contents()) ?? [], as: UTF8.self)
        return line.contains(folder.path) && isWanted(line)
      }
  }

  @Test func whatMakesNoSenseIsRefused() throws {
    let folder = try TemporaryDirectory()
    let result = try stress(["--mutant", "nothing"], in: folder)
    #expect(result.status == .exited(64))
    #expect(result.errors.contains("cannot disable 'nothing': the mutants are no-fence"))
    #expect(
      try stress(["run", "--on", "vfat"], in: folder).errors
        .contains("cannot run on 'vfat': the kinds are ext4, "))
    #expect(try stress(["--seed", "x"], in: folder).status == .exited(64))
    #expect(try stress(["--help"], in: folder).output.contains("wormhole-stress"))
  }
}
