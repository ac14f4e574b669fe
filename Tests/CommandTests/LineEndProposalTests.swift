import TestTraits
import Testing
import WormholeCommandLine

@testable import WormholeCommand

/// Completions behind options that are written in one word with their value.
@Suite(.blocking) struct LineEndProposalTests {
  private func words(_ line: String...) -> [String] {
    Proposal(.wormhole, line).words.map(\.text)
  }

  /// The next word is not the value once more.
  @Test func aValueBehindAnEqualSignEndsItsOption() {
    #expect(words("--container=none", "pu") == ["put"])
    #expect(Proposal(.wormhole, ["--container=none", "pu"]).kind == .words)
    #expect(words("--container=none", "--group=a", "completions", "z") == ["zsh"])
    let left = words("put", "--type=json", "--")
    #expect(left.contains("--number") && !left.contains("--type"), "\(left)")
    #expect(words("put", "--type=json", "speed", "--").contains("--raw"))
  }

  /// An equal sign without a value is an empty value.
  @Test func anEmptyValueIsAValueToo() {
    #expect(words("--container=", "pu") == ["put"])
    #expect(!words("put", "--type=", "--t").contains("--type"))
  }
}
