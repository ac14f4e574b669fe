import TestSupport
import TestTraits
import Testing

/// The house rules, applied to every file of the package.
@Suite(.blocking) struct HouseTests {
  @Test(arguments: Rule.all.map(\.name))
  func everyFileKeeps(_ name: String) throws {
    let rule = try #require(Rule.all.first { $0.name == name })
    let files = try House.files()
    #expect(files.count > 30, "the files were found")
    for finding in files.flatMap(rule.findings(in:)) { Issue.record("\(finding)") }
  }

  @Test func theTopLevelHoldsFiveNames() throws {
    let expected: Set = ["Package.swift", "Sources", "Tests", "Fixtures", "README.md"]
    #expect(try House.topLevel() == expected)
  }

  @Test func everyRoomHasItsRule() throws {
    let rooms = Set(try House.files().filter(\.isSource).map(\.room))
    #expect(rooms.subtracting(Rule.rooms.keys) == [])
  }

  @Test func noFolderHoldsMoreThanTwentyFiles() throws {
    let folders = Dictionary(
      grouping: try House.files().filter { $0.isSource && $0.isSwift }
    ) { file in file.path.split(separator: "/").dropLast().joined(separator: "/") }
    #expect(folders.count > 20)
    for (folder, files) in folders where files.count > 20 {
      Issue.record("\(folder) holds \(files.count) files: which of them belong together?")
    }
  }

  /// One that names no test is passed over without a word.
  @Test func theTestsThatTheChecksNameAreThere() throws {
    let files = try House.files()
    let declared = files.filter(\.isTest).flatMap { file in
      file.words.flatMap { line in line.map { String($0.text) } }
    }
    let words = Set(declared + files.map(\.room))
    let checks = try #require(files.first { $0.path == ".ci/run" })
    var named: [String] = []
    let parts = checks.lines.flatMap { $0.split { " ';\\".contains($0) }.map(String.init) }
    for (option, value) in zip(parts, parts.dropFirst())
    where option == "--skip" || option == "--filter" {
      named += value.split(separator: "|").compactMap { $0.split(separator: ".").last }
        .map(String.init)
    }
    #expect(named.count > 30)
    for name in named where !words.contains(where: { $0.contains(name) }) {
      Issue.record("there is no test '\(name)'")
    }
  }

  /// Whatever the rules look for, each has been seen to find it.
  @Test func everyRuleIsShownToFail() {
    #expect(Set(Example.bad.map(\.rule)) == Set(Rule.all.map(\.name)))
  }
}
