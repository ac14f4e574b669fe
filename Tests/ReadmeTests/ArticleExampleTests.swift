import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// What the articles show compiles.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct ArticleExampleTests {
  private static let catalogues = [
    "Sources/Wormhole/Wormhole.docc", "Sources/WormholeTesting/WormholeTesting.docc",
  ]
  /// The articles that show lines of programs, and the sources of the lines.
  private static let programs = [
    "TheTicketOffice.md": "Sources/WormholeCinemaTime", "Shims.md": "Tests/Shims",
  ]
  /// The article with the files that the command writes.
  ///
  /// `NewVerbTests` compares the files, and `ExamplePackageTests` compiles them.
  private static let written = "TwoSidesInCI.md"

  private func contents(_ path: String) throws -> String {
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    return String(decoding: try file.contents(), as: UTF8.self)
  }

  private func names(in path: String) throws -> [String] {
    try Descriptor.open(path: Programs.source + "/" + path, [.readOnly, .directory]).names()
  }

  /// Lines with content, without their indentation.
  ///
  /// An example that is only compiled is no test, and imports are at the top of a file.
  private func lines(of text: some StringProtocol) -> [Substring] {
    text.split(separator: "\n").map { line in
      let line = Substring(line).drop { $0 == " " }
      return line.hasPrefix("@Test ") ? line.dropFirst("@Test ".count) : line
    }.filter { !$0.isEmpty && !$0.hasPrefix("import ") }
  }

  private func sources(below path: String) throws -> [String] {
    try names(in: path).flatMap { name in
      if name.hasSuffix(".swift") { return [try contents("\(path)/\(name)")] }
      return name.contains(".") ? [] : try sources(below: "\(path)/\(name)")
    }
  }

  private func blocks(of article: String) throws -> [[Substring]] {
    let parts = try contents(article).split(separator: "```", omittingEmptySubsequences: false)
    return stride(from: 1, to: parts.count, by: 2).map { parts[$0] }
      .filter { $0.hasPrefix("swift\n") }.map { lines(of: $0.dropFirst("swift\n".count)) }
  }

  @Test func everyExampleOfTheArticlesStandsInAFileThatCompiles() throws {
    let compiled = try [
      "Tests/ReadmeTests/Examples", "Tests/FirstProgram", "Tests/ConfigurationProgram",
      "Tests/ServiceProgram",
    ]
    .flatMap { try sources(below: $0) }.map { lines(of: $0) }
    var count = 0
    for catalogue in Self.catalogues {
      for article in try names(in: catalogue)
      where article.hasSuffix(".md") && article != Self.written {
        for block in try blocks(of: catalogue + "/" + article) {
          count += 1
          let parts = block.split(separator: "// …")
          if let program = Self.programs[article] {
            let there = Set(try sources(below: program).flatMap { lines(of: $0) })
            let missing = parts.joined().filter { !there.contains($0) }
            #expect(missing.isEmpty, "\(article):\n\(missing.joined(separator: "\n"))")
          } else {
            let isThere = compiled.contains { file in parts.allSatisfy { isPart($0, of: file) } }
            #expect(isThere, "\(article):\n\(block.joined(separator: "\n"))")
          }
        }
      }
    }
    #expect(count > 40)
  }

  @Test func whatDiffersIsSeen() {
    let file = lines(of: "func a() {\n  b()\n\n  c()\n}")
    #expect(isPart(lines(of: "b()\nc()"), of: file))
    #expect(!isPart(lines(of: "b()\nd()"), of: file))
    #expect(!isPart(lines(of: "b()\nc(1)"), of: file))
  }

  private func isPart(_ block: some Collection<Substring>, of lines: [Substring]) -> Bool {
    lines.indices.contains { lines[$0...].starts(with: block) }
  }
}
