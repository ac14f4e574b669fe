import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The article on the ticket office shows code of the sources, and names tests that exist.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct ArticleTests {
  private func lines(of path: String) throws -> [String] {
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    return String(decoding: try file.contents(), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  private func article() throws -> [String] {
    try lines(of: "Sources/Wormhole/Wormhole.docc/TheTicketOffice.md")
  }

  @Test func everyLineOfCodeIsInTheSources() throws {
    let folder = "Sources/WormholeCinemaTime/"
    let sources = try [
      "Sample/SampleOffice", "Sample/SampleConnectivity", "Office/BoxOffice",
      "Connectivity/Connectivity",
    ].flatMap { try lines(of: folder + $0 + ".swift") }
    var shown = 0
    var isCode = false
    for line in try article() {
      if line.hasPrefix("```") {
        isCode = line == "```swift"
      } else if isCode, !line.isEmpty {
        shown += 1
        #expect(sources.contains(line), "\(line)")
      }
    }
    #expect(shown > 30)
  }

  @Test func everyTestThatIsNamedExists() throws {
    let words = try article().joined(separator: "\n").split(separator: "`").map(String.init)
    let losses = words.filter { $0.hasPrefix("inTheSample") || $0.hasPrefix("withOurs") }
    #expect(losses.count == 14)
    let promises = words.filter { $0.firstRange(of: "Tests.") != nil }
    #expect(promises.count == 6)
    for name in losses.map({ "LossTests." + $0 }) + promises {
      let parts = name.split(separator: ".")
      let tests = try lines(of: "Tests/CinemaTimeTests/\(parts[0]).swift")
      #expect(tests.contains { $0.contains("func \(parts[1])(") }, "\(name)")
    }
  }
}
