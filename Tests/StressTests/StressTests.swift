import Syscalls
import TestSupport
import TestTraits
import Testing

@testable import WormholeStress

/// The program as a whole: it finds nothing where nothing is wrong, and what is wrong it finds, and
/// finds again from the line that it prints.
@Suite(.blocking) struct StressTests {
  private func stress(_ arguments: [String], in folder: TemporaryDirectory) throws -> Outcome {
    try TestSupport.run(
      Programs.built("wormhole-stress"), arguments, environment: ["TMPDIR=\(folder.path)"])
  }

  @Test(arguments: [3, 4, 5])
  func allPromisesAreKept(_ seed: Int) throws {
    let folder = try TemporaryDirectory()
    let result = try stress(["--seed", "\(seed)", "--duration", "2"], in: folder)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    #expect(result.output.contains("seed \(seed): "))
  }

  /// Seed 4 is about channels, 5 about messages.
  @Test(arguments: [("no-removal", 4), ("read-before-claim", 5)])
  func aMechanismThatIsTakenOutIsMissed(_ mutant: String, _ seed: Int) throws {
    let folder = try TemporaryDirectory()
    var arguments = ["run", "--seed", "\(seed)", "--mutant", mutant, "--duration", "3"]
    var kinds: [Set<Substring>] = []
    // When exactly something befalls whom, the machine decides.
    for time in ["first", "again"] {
      var found: Outcome?
      for _ in 0..<12 where found == nil {
        let result = try stress(arguments, in: folder)
        if result.status == .exited(1) { found = result }
      }
      let result = try #require(found, "the \(time) time")
      let line = try #require(
        result.errors.split(separator: "\n").first { $0.contains("again: ") })
      kinds.append(Set(result.output.split(separator: "\n").compactMap(Self.kind)))
      let words = line.split(separator: " ").map(String.init)
      let begin = try #require(words.firstIndex(of: "run"))
      arguments = Array(words[begin...])
    }
    #expect(!kinds[0].isDisjoint(with: kinds[1]), "the same promise is broken again: \(kinds)")
  }

  /// Which promise a line says to be broken; nil for other lines.
  private static func kind(_ line: Substring) -> Substring? {
    line.hasPrefix("  ") ? line.dropFirst(2).split(separator: ":").first : nil
  }

  @Test func whoeverKillsTheProgramEndsItsProcesses() throws {
    let folder = try TemporaryDirectory()
    let program = try Running(
      Programs.built("wormhole-stress"), ["--seed", "3", "--duration", "60", "--no-faults"],
      environment: ["TMPDIR=\(folder.path)"])
    try eventually("it has workers") { try Self.workers(in: folder).count >= 2 }
    try program.child.send(.kill)
    try eventually("its workers have ended") { try Self.workers(in: folder).isEmpty }
  }

  /// The workers that use a directory in the folder.
  private static func workers(in folder: TemporaryDirectory) throws -> [Int32] {
    try Descriptor.open(path: "/proc", [.readOnly, .directory]).names().compactMap { Int32($0) }
      .filter { process in
        // It may be gone.
        let file = try? Descriptor.open(path: "/proc/\(process)/cmdline", [.readOnly])
        let line = String(decoding: (try? file?.contents()) ?? [], as: UTF8.self)
        return line.contains("--worker") && line.contains(folder.path)
      }
  }

  @Test func whatMakesNoSenseIsRefused() throws {
    let folder = try TemporaryDirectory()
    let result = try stress(["--mutant", "nothing"], in: folder)
    #expect(result.status == .exited(64))
    #expect(result.errors.contains("cannot take out 'nothing': there are no-fence"))
    #expect(try stress(["--seed", "x"], in: folder).status == .exited(64))
    #expect(try stress(["--help"], in: folder).output.contains("wormhole-stress"))
  }
}
