import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// README's commands, programs and lists agree with the code.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct ReadmeTests {
  private static let transcripts = [
    "README.md", Readme.catalogue + "/TheCommand.md", Readme.catalogue + "/TheTicketOffice.md",
  ]

  @Test(arguments: transcripts)
  func everyTranscriptIsTrueWordForWord(_ page: String) throws {
    let session = try Readme(page).session("transcript")
    #expect(session.exchanges.count >= 7)
    let home = try TemporaryDirectory()
    let outcome = try session.run(in: home.path, programs: Programs.built)
    #expect(outcome.errors == "")
  }

  @Test func everyPageWithATranscriptIsRun() throws {
    let pages = try Readme.pages().filter { page in
      try Readme(page).blocks.contains { $0.mark == "transcript" }
    }
    #expect(pages.sorted() == Self.transcripts.sorted())
  }

  /// No block of README shows a command or code that no test runs or compiles.
  @Test func everyBlockIsMarked() throws {
    let blocks = try Readme().blocks
    #expect(blocks.count > 4)
    for block in blocks {
      switch block.language {
      case "console": #expect(["install", "program", "transcript"].contains(block.mark))
      case "swift": #expect(block.mark == "manifest" || block.mark.hasPrefix("Tests/"))
      default: Issue.record("README has a block of '\(block.language)'")
      }
    }
  }

  /// The programs in README and in the first articles.
  @Test(arguments: [
    ("README.md", "cinema", "ReadmeProgram"),
    (Readme.catalogue + "/GettingStarted.md", "cinema", "FirstProgram"),
    (Readme.catalogue + "/Configuration.md", "server", "ConfigurationProgram"),
  ])
  func theProgramDoesWhatIsShown(_ page: String, _ name: String, _ program: String) throws {
    let session = try Readme(page).session("program")
    #expect(session.exchanges.count > 3)
    let home = try TemporaryDirectory()
    _ = try session.run(
      in: home.path, programs: Programs.built, replacing: ["swift run \(name)": program])
  }

  @Test func everyPageWithAProgramIsRun() throws {
    let pages = try Readme.pages().filter { page in
      try Readme(page).blocks.contains { $0.mark == "program" }
    }
    let articles = ["Configuration.md", "GettingStarted.md"]
    #expect(pages.sorted() == ["README.md"] + articles.map { Readme.catalogue + "/" + $0 })
  }

  /// A test for releases builds README's package: the article's is the same.
  @Test func theArticleOnFirstStepsHasTheManifestOfReadme() throws {
    let article = try Readme(Readme.catalogue + "/GettingStarted.md")
    let manifest = article.block("manifest")
    #expect(!manifest.isEmpty)
    #expect(try manifest == Readme().block("manifest"))
  }

  @Test func theTableOfCommandsIsTheCommandsOwn() throws {
    let rows = Table.wormhole.verbs.map { "| `wormhole \($0.usage)` | \($0.summary) |" }
    let page = Readme.catalogue + "/TheCommand.md"
    let shown = try Readme(page).commands
    for row in rows where !shown.contains(row) {
      Issue.record("\(page): the table of all verbs has no row: \(row)")
    }
    for row in shown where !rows.contains(row) {
      Issue.record("\(page): the command has no verb for the row: \(row)")
    }
    let isInOrder = shown == rows || Set(shown) != Set(rows)
    #expect(isInOrder, "\(page): the rows are not in the order of Table.swift")
  }

  @Test func everySwiftExampleIsAFileThatCompiles() throws {
    let examples = try Readme.pages().flatMap { try Readme($0).blocks }
      .filter { $0.language == "swift" && $0.mark.hasPrefix("Tests/") }
    #expect(examples.count > 1)
    for example in examples {
      let file = try Descriptor.open(path: Programs.source + "/" + example.mark, [.readOnly])
      let text = String(decoding: try file.contents(), as: UTF8.self)
      #expect(text == example.lines.joined(separator: "\n") + "\n", "\(example.mark)")
    }
  }

  @Test func theExampleSaysWhatItPromises() {
    let full = WormholeError(.full, "put value into channel", "speed", because: "no space left")
    #expect(advice(on: full).sentence == "cannot put value into channel 'speed': no space left")
    #expect(advice(on: full).tryAgain)
    let refused = WormholeError(.refused, "open container", "here", because: "it is a link")
    #expect(!advice(on: refused).tryAgain)
  }
}
