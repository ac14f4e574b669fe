import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeCommandLine

/// The words of a bash command line, compared with those that bash itself makes of it.
@Suite(.blocking, .notSanitized("about what a command prints")) struct BashLineTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  /// The words that bash makes of a complete line.
  private func split(_ line: String) throws -> [String] {
    let outcome = try stage.run(
      "exec bash -c \"$SCRIPT\"", environment: ["SCRIPT=printf '%s\\0' \(line)"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output.split(separator: "\0").map(String.init)
  }

  static let lines = [
    #"get a\ b"#, #"get a\\b c\'d\"e"#, #"get "a\"b\$c\`d\\e\x""#, #"get 'a\b"c'"#,
    #"get 'a'\''b'"#, #"get $'a\011b'c"#, #"get $'\047'"#, #"get a"b c"'d e'f\ g"#,
    #"get   a  b"#, "get\ta\tb", #"get "a'b" 'c"d'"#, #"get $'a''b'$'\040'c d"#,
  ]

  @Test(arguments: lines) func wordsAreThoseOfBash(_ line: String) throws {
    #expect(BashLine(line).words == (try split(line)))
  }

  @Test func aWordThatIsBeingTypedIsTheLastOne() {
    #expect(BashLine("get ").words == ["get", ""])
    #expect(BashLine("get a").words == ["get", "a"])
    #expect(BashLine(#"get "a b"#).words == ["get", "a b"])
    #expect(BashLine("get 'a b").words == ["get", "a b"])
    // Incomplete: what the backslash or the code stands for is not known yet.
    #expect(BashLine(#"get a\"#).words == ["get", "a"])
    #expect(BashLine(#"get "a\"#).words == ["get", "a"])
    #expect(BashLine(#"get $'a\011"#).words == ["get", ""])
  }

  static let typed = [
    ("", ""), ("a", "a"), (#"a\ "#, "a "), (#"a\\"#, #"a\"#), (#"a\""#, #"a""#),
    (#""a b""#, "a b"), (#"'a'\''b'"#, "a'b"), (#"$'a\011'"#, "a\t"), (#"a$'\012'b"#, "a\nb"),
  ]

  /// Whatever the rest contains, bash reads the completed word as it was meant.
  @Test(arguments: typed) func aCompletedWordIsTheWantedOne(_ text: String, _ word: String) throws {
    for rest in ["x", " y", "'", "\"", "$HOME", "\\", "`id`", "!!", "*", "\t\n", "é;&|<>()#~"] {
      let wanted = word + rest
      let line = BashLine("get " + text)
      #expect(line.words == ["get", word])
      let completed = line.completed(wanted, replacing: text)
      #expect(completed.hasPrefix(text))
      #expect(try split("get " + completed) == ["get", wanted], "\(completed)")
    }
  }
}
