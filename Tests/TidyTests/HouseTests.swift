import TestSupport
import TestTraits
import Testing

/// The house rules, applied to every file of the package.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct HouseTests {
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

  /// The server and both pages stay small enough to be read as a whole.
  @Test func theServerAndBothPagesStaySmall() throws {
    let parts = [
      "Sources/WormholeWeb/", "Sources/WormholeCommand/Serving/",
      "Sources/WormholeCommandLine/PageServer.swift", "Serving/CinemaPage.swift",
    ]
    let files = try House.files().filter { file in parts.contains { file.path.contains($0) } }
    #expect(files.count > 10)
    #expect(files.map(\.lines.count).reduce(0, +) <= 1500)
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

  /// A name that stays behind would let the next reading of the clock pass.
  @Test func everyNamedPlaceReadsItsClock() throws {
    let files = try House.files()
    func isRead(in place: String, _ reads: (String) -> Bool) -> Bool {
      files.contains { $0.path.hasPrefix("Sources/" + place) && $0.code.contains(where: reads) }
    }
    for place in Rule.monotonicClock.keys.sorted() {
      #expect(isRead(in: place, Rule.readsMonotonicClock), "\(place)")
    }
    for place in Rule.wallClock.keys.sorted() {
      #expect(isRead(in: place, Rule.readsWallClock), "\(place)")
    }
  }

  /// Each rule has an example that it finds.
  @Test func everyRuleIsShownToFail() {
    #expect(Set(Example.bad.map(\.rule)) == Set(Rule.all.map(\.name)))
  }
}
