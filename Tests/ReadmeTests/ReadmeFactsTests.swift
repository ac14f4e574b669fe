import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// README's numbers, links and names are those of the articles and of the package.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct ReadmeFactsTests {
  private func text(_ path: String) throws -> String {
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    return String(decoding: try file.contents(), as: UTF8.self)
  }

  private func rows(of text: some StringProtocol) -> [Substring] {
    text.split(separator: "\n").map { Substring($0) }
      .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| What |") }
  }

  @Test func everyNumberIsThatOfAnArticle() throws {
    let section = try Readme().text.split(separator: "\n## ").first { $0.hasPrefix("Numbers\n") }
    let shown = rows(of: try #require(section))
    let known = try ["Performance", "HowItIsTested"].flatMap {
      rows(of: try Readme("\(Readme.catalogue)/\($0).md").text)
    }
    #expect(shown.count > 9)
    for row in shown where !known.contains(row) { Issue.record("no article has the row \(row)") }
  }

  /// The table of mechanisms is in `.ci/mutants`, a line each.
  @Test func theNumberOfMechanismsIsThatOfTheTable() throws {
    let parts = try text(".ci/mutants").split(separator: "\ntable=\"\n")
    try #require(parts.count == 2)
    let count = parts[1].prefix { $0 != "\"" }.split(separator: "\n").count
    #expect(count > 30)
    let row = "| mechanisms disabled, each noticed by a test | \(count) | `.ci/mutants` |"
    #expect(rows(of: try Readme().text).contains(Substring(row)), "\(count)")
  }

  @Test func everyLinkLeadsToAFileAndEveryArticleIsLinked() throws {
    let lines = try Readme().text.split(separator: "\n")
    let links = lines.compactMap { $0.wholeMatch(of: #/\[(.+)\]: (\S+)/#)?.output }
    #expect(links.count > 20)
    for (_, title, path) in links {
      let article = try text(String(path))
      #expect(article.hasPrefix("# \(title)\n"), "\(path)")
    }
    let prose = lines.filter { $0.wholeMatch(of: #/\[(.+)\]: (\S+)/#) == nil }
      .joined(separator: "\n")
    let used = prose.matches(of: #/\[([A-Z][A-Za-z ]+)\]/#).map(\.output.1)
    #expect(Set(used) == Set(links.map(\.1)))
    let articles = try Readme.pages().filter {
      $0.hasPrefix(Readme.catalogue) && !$0.hasSuffix("/Wormhole.md")
    }
    #expect(Set(articles).subtracting(links.map { String($0.2) }) == [])
  }

  @Test func everyProductIsNamed() throws {
    let products = try text("Package.swift")
      .matches(of: #/\.(?:library|executable)\(name: "([^"]+)"/#).map(\.output.1)
    #expect(products.count > 8)
    let readme = try Readme().text
    for product in products where !readme.contains("`\(product)`") {
      Issue.record("README does not name the product \(product)")
    }
  }

  @Test func readmeIsShort() throws {
    let lines = try Readme().text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count < 250)
  }
}
