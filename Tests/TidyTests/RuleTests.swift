import TestTraits
import Testing

/// Each rule finds its violations, and leaves alone the lines that only look like violations.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct RuleTests {
  @Test(arguments: Example.bad)
  func findsWhatBreaksIt(_ example: Example) throws {
    #expect(try findings(of: example).count == 1, "\(example.rule): \(example.text)")
  }

  @Test(arguments: Example.good)
  func leavesTheRestAlone(_ example: Example) throws {
    #expect(try findings(of: example) == [], "\(example.rule): \(example.text)")
  }

  private func findings(of example: Example) throws -> [Finding] {
    let rule = try #require(Rule.all.first { $0.name == example.rule })
    return rule.findings(in: SourceFile(example.path, example.text))
  }

  @Test func takesSourceApart() {
    let file = SourceFile(
      "Sources/A/A.swift",
      """
      let a = "x \\(f("y", g(1))) z"  // note
      let b = #"raw " \\#(h) \\("# /* one /* two */ three */ + c
      """ + "\n")
    #expect(file.comments[0].hasSuffix("// note"))
    #expect(file.comments[1].contains("/* one /* two */ three */"))
    #expect(Word.words(of: file.code[0]).map(\.text) == ["let", "a", "f", "g"])
    #expect(Word.words(of: file.code[1]).map(\.text) == ["let", "b", "h", "c"])
  }

  @Test func takesLongStringsApart() {
    let file = SourceFile(
      "Sources/A/A.swift", "let a = \"\"\"\n  print(1) \" \\(b)\n  \"\"\"\nlet c = 1\n")
    #expect(file.code.joined().split(separator: " ").joined(separator: " ").contains("let c = 1"))
    let words = file.code.flatMap { Word.words(of: $0).map(\.text) }
    #expect(words == ["let", "a", "b", "let", "c"])
  }
}
