import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// Any command line is understood, or refused with a sentence; and so is any command line for which
/// a shell asks for completions.
///
/// `WORMHOLE_FUZZ` sets the number of lines; `WORMHOLE_SEED` generates the same lines again.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct ArgumentFuzzTests {
  private static let count =
    Processes.environment("WORMHOLE_FUZZ").flatMap { Int($0) } ?? 600
  private static let seed = TestRun.seed

  private static let table = Table.wormhole

  private static let words: [String] =
    table.names
    + [
      "", "-", "--", "---", "-h", "--help", "--version", "--json", "--quiet", "--verbose", "-x",
      "--=", "--=x", "--json=", "--json=x", "--container", "--container=", "--container=/nowhere",
      "--count", "--count=-1", "--count=99999999999999999999", "--timeout", "--timeout=1e400",
      "--timeout=nan", "--timeout=-0", "--type", "--type=int", "--type=nothing", "--to", "--as",
      "-1", "-.5", "-1e5", "0x10", "true", "1;2", "a b", "a\nb", "\u{1B}[31m", "\0", "é",
      "e\u{301}",
      "🎬", "../..", "/", "%2F", "~", "$HOME", "`id`", "'", "\"", "\\", "*", "!", "#",
      String(repeating: "a", count: 5000),
    ]

  private func line(_ random: inout SeededRandom) -> [String] {
    var line = (0..<Int.random(in: 0..<7, using: &random)).map { _ in
      Self.words.randomElement(using: &random)!
    }
    // Most lines begin with a name that has a meaning.
    if Int.random(in: 0..<4, using: &random) > 0 {
      line.insert(Self.table.names.randomElement(using: &random)!, at: 0)
    }
    if let place = line.indices.randomElement(using: &random), .random(using: &random) {
      var characters = Array(line[place].prefix(40))
      characters.insert(
        ["=", "-", ",", "\u{301}", "\0", "9"].randomElement(using: &random)!,
        at: .random(in: 0...characters.count, using: &random))
      line[place] = String(characters)
    }
    return line
  }

  /// The fault of the reply to a command line.
  private func judge(_ line: [String]) -> String? {
    do throws(Failure) {
      _ = try Parser.parse(line, by: Self.table)
    } catch {
      let text = error.sentence
      if error.status != 64 { return "the status is \(error.status)" }
      if !text.hasPrefix("cannot ") { return "the sentence is '\(text)'" }
      if text.hasSuffix(".") { return "the sentence has a full stop" }
    }
    _ = Parser.output(of: Self.table, for: line)
    _ = Proposal(Self.table, line)
    return nil
  }

  @Test func anyLineIsUnderstoodOrRefused() {
    var random = SeededRandom(seed: Self.seed)
    for number in 0..<Self.count {
      let line = line(&random)
      if let broken = judge(line) {
        Issue.record("\(broken): \(line), number \(number); WORMHOLE_SEED=\(Self.seed)")
        return
      }
    }
  }

  /// Lines found earlier, and lines likely to be found: a line each, with tabs between the words.
  @Test func linesThatWereTroubleAreNone() throws {
    for text in try Fixture.text("fuzz/arguments.txt").split(separator: "\n") {
      let line = text.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      #expect(judge(line) == nil, "\(line)")
    }
  }

  /// The whole program, with lines to refuse before any file is touched.
  @Test func theProgramRefusesWhatItDoesNotUnderstand() throws {
    var random = SeededRandom(seed: Self.seed)
    let folder = try TemporaryDirectory()
    var refused = 0
    while refused < 5 {
      // The word before may be an option with a value, which makes the line valid.
      let line = line(&random).filter { !$0.contains("\0") } + ["--no-such-option"]
      guard (try? Parser.parse(line, by: Self.table)) == nil else { continue }
      refused += 1
      let result = try TestSupport.run(
        Programs.built("wormhole"), line,
        environment: ["WORMHOLE_CONTAINER=\(folder.path)/c"])
      #expect(result.status == .exited(64), "\(line); WORMHOLE_SEED=\(Self.seed)")
    }
    #expect(try folder.descriptor.names().isEmpty)
  }
}
