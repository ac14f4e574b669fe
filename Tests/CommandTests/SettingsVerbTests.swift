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

  /// A script reads the listing line by line.
  @Test func aKeyWithALineFeedHasOneLine() throws {
    let written = try stage.run("wormhole defaults write s \"$(printf 'a\\nb')\" words")
    #expect(written.status == .exited(0), "\(written.errors)")
    #expect(try stage.run("wormhole defaults read s").output == #""a\nb""# + "\twords\n")
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

  /// An infinite sum would replace the number, and no later change would bring the number back.
  @Test func aSumWithAFractionThatIsTooLargeIsRefused() throws {
    for (number, step) in [("1e+308", "1e308"), ("-1e+308", "-1e308"), ("1e+308", "1.5e308")] {
      #expect(try stage.run("wormhole put n \(number) --number").status == .exited(0))
      let outcome = try stage.run("wormhole update n --add \(step)")
      #expect(outcome.status == .exited(65), "\(number) \(step)")
      #expect(outcome.errors.contains("the sum does not fit into 64 bits"), "\(outcome.errors)")
      #expect(try stage.run("wormhole get n").output == number + "\n")
    }
    #expect(try stage.run("wormhole update n --add -1e308").output == "0.0\n")
    for text in ["inf", "nan", "1e999"] {
      #expect(try stage.run("wormhole put n \(text) --number").status == .exited(65), "\(text)")
      #expect(try stage.run("wormhole update n --add \(text)").status == .exited(64), "\(text)")
    }
    #expect(try stage.run("wormhole get n").output == "0.0\n")
  }
}
