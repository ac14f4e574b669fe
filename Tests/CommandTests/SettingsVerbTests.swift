import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole defaults` and numbers, where the help makes promises.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct SettingsVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  @Test func rawAddsNoLineFeed() throws {
    _ = try stage.run("wormhole defaults write s k words")
    #expect(try stage.run("wormhole defaults read s k --raw").output == "words")
    #expect(try stage.run("wormhole defaults read s k").output == "words\n")
  }

  @Test func aKeyThatIsNotThereIsANo() throws {
    _ = try stage.run("wormhole defaults write s k words")
    for words in ["read s none", "delete s none", "delete none none", "read none none"] {
      let outcome = try stage.run("wormhole defaults \(words)")
      #expect(outcome.status == .exited(1), "\(words)")
      #expect(outcome.errors.contains("the suite has no key 'none'"))
    }
    #expect(try stage.run("wormhole defaults delete s k").status == .exited(0))
  }

  @Test func anyWholeNumberCanBeAddedTo() throws {
    let large = "18446744073709551615"
    _ = try stage.run("wormhole put n \(large) --type json")
    #expect(try stage.run("wormhole update n --add -1").output == "18446744073709551614\n")
    #expect(try stage.run("wormhole update n --add 1").output == "\(large)\n")
    let outcome = try stage.run("wormhole update n --add 1")
    #expect(outcome.status == .exited(65))
    #expect(outcome.errors.contains("the sum does not fit into 64 bits"))
    _ = try stage.run("wormhole put n -1 --type json")
    #expect(try stage.run("wormhole update n --add \(large)").output == "18446744073709551614\n")
  }
}
