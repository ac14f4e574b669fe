import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The one rule of line ends: one line feed at the end of a text that arrives on a stream is not
/// part of the text, and is added again when the text is printed; `--raw` leaves all line feeds.
@Suite(.blocking, .notSanitized("about what a command prints")) struct StreamTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  @Test(arguments: [
    "put x; wormhole get x", "put x -; wormhole get x",
    "defaults write s k; wormhole defaults read s k",
    "send --to w; wormhole receive --as w --count 1 --exec cat",
    "send --to w --type string; wormhole receive --as w --count 1",
    "send --to w --from t --context; wormhole receive --as w --count 1 --contexts",
  ])
  func oneLineFeedGoesAndComes(_ words: String) throws {
    #expect(try stage.done("echo hi | wormhole \(words)") == "hi\n")
  }

  @Test(arguments: ["one\n", "one\n\n", "\n", "one\ntwo\n"])
  func aFileThatIsPutIsTheFileThatComesOut(_ text: String) throws {
    try stage.directory.write(text, to: "in")
    #expect(try stage.done("wormhole put x <in && wormhole get x >out && cmp in out") == "")
    #expect(
      try stage.done("wormhole put x --raw <in && wormhole get x --raw >out && cmp in out") == "")
    #expect(
      try stage.done(
        "wormhole put y a && wormhole update y --raw --exec 'cat in' && wormhole get y --raw >out "
          + "&& cmp in out") == "")
    #expect(
      try stage.done(
        "wormhole defaults write s k --raw <in && wormhole defaults read s k --json | wc -l")
        == "1\n")
    #expect(
      try stage.done(
        "wormhole send --to w --raw <in && wormhole receive --as w --count 1 --raw >out "
          + "&& cmp in out") == "")
  }

  /// Foreign programs may have chosen the names.
  @Test func noNameIsMoreThanLettersToATerminal() throws {
    try stage.directory.write("a\u{1b}[31m\nb\u{9b}1m\u{2028}c\u{202e}d\u{2066}", to: "in")
    let shown = #"a\u001b[31m\nb\u009b1m\u2028c\u202ed\u2066"#
    _ = try stage.run("wormhole put x 1")
    let missing = try stage.run("wormhole get \"$(cat in)\" --wait --timeout 0.1")
    #expect(
      missing.errors == "wormhole: cannot read channel '\(shown)': no value arrived before "
        + "the deadline\n")
    #expect(
      try stage.done("wormhole put \"$(cat in)\" 1; wormhole list | head -1") == "\"\(shown)\"\n")
    #expect(try stage.done("wormhole list --json").contains("\"channel\":\"\(shown)\""))
  }

  @Test func whatIsNoTextKeepsItsLastByte() throws {
    let odd = "printf '\\377\\n'"
    #expect(try stage.done("\(odd) | wormhole put x && wormhole get x | wc -c") == "2\n")
    #expect(
      try stage.done("echo hi | wormhole put x --type data && wormhole get x | wc -c") == "3\n")
    #expect(
      try stage.done("wormhole update x --exec \"\(odd)\" && wormhole get x | wc -c") == "2\n")
  }

  @Test func questionsAndAnswersGoByItToo() throws {
    let plain = try stage.start("wormhole reply --as a --exec cat --count 1 --json")
    #expect(
      try stage.done(
        "until echo hi | wormhole request --to a 2>/dev/null; do :; done") == "hi\n")
    #expect(try plain.outcome().output.contains(#""value":"hi""#))
    let raw = try stage.start("wormhole reply --as b --exec 'cat >got; cat got' --raw --count 1")
    #expect(
      try stage.done("until echo hi | wormhole request --to b --raw 2>/dev/null; do :; done")
        == "hi\n")
    _ = try raw.outcome()
    #expect(try stage.done("wc -c <got") == "3\n")
  }
}
