import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// Address, licence and version have one value everywhere: see ``Project``.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct ProjectTests {
  @Test func everyMentionOfTheAddressIsThatOfTheProject() throws {
    var count = 0
    for page in try Readme.pages() {
      for address in addresses(in: try Readme(page).text) {
        count += 1
        #expect(isRight(address, by: Project.address), "\(page): \(address)")
      }
    }
    #expect(count >= 3)
  }

  @Test func everyVersionIsThatOfTheCommand() throws {
    #expect(Table.wormhole.version == Project.version)
    for page in try Readme.pages() {
      for match in try Readme(page).text.matches(of: #/from: "([0-9][^"]*)"/#) {
        #expect(match.output.1 == Project.version, "\(page)")
      }
    }
  }

  @Test func readmeStatesAddressAndLicence() throws {
    let lines = try Readme().text.split(separator: "\n")
    #expect(
      lines.filter { $0.contains("licence") || $0.contains("Licence") } == [
        Substring(Project.notice)
      ])
  }

  @Test func anotherAddressIsFound() {
    let text = "$ git clone a/b.git\n.package(url: \"c/d.git\", from: \"1.0.0\")\nsee e/f.git"
    #expect(addresses(in: text) == ["a/b.git", "c/d.git"])
    #expect(isRight("a/b.git", by: "a/b.git") && !isRight("c/d.git", by: "a/b.git"))
    #expect(!isRight("…", by: "a/b.git") && !isRight(Project.placeholder, by: "a/b.git"))
    #expect(isRight(Project.placeholder, by: nil) && !isRight("a/b.git", by: nil))
  }

  /// The addresses in commands and manifests.
  private func addresses(in text: String) -> [String] {
    text.matches(of: #/(?:git clone |\.package\(url: ")([^"\s]+)/#).map { String($0.output.1) }
  }

  /// Without an address a text may also leave it out.
  private func isRight(_ mention: String, by address: String?) -> Bool {
    if let address { mention == address } else { [Project.placeholder, "…"].contains(mention) }
  }
}
