import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Headers on the command line, and in the environment of commands.
@Suite(.blocking, .notSanitized("about what a command prints")) struct HeaderVerbTests {
  /// Prints all variables of headers, sorted.
  private static let printing = "cat >/dev/null; env | grep ^WORMHOLE_HEADER | LC_ALL=C sort"

  @Test func aCommandReceivesThemInItsEnvironment() throws {
    let stage = try Stage()
    _ = try stage.done(
      "wormhole send --to watch --header trace-id=7 --header a.b='x \"y\"=z' hello")
    _ = try stage.done("wormhole send --to watch plain")
    // Variables that this command has itself inherited, from an outer message.
    let output = try stage.done(
      "export WORMHOLE_HEADERS=old WORMHOLE_HEADER_OLD=old; "
        + "wormhole receive --as watch --count 2 --exec '\(Self.printing)'")
    #expect(
      output == """
        WORMHOLE_HEADERS={"a.b":"x \\"y\\"=z","trace-id":"7"}
        WORMHOLE_HEADER_A_B=x "y"=z
        WORMHOLE_HEADER_TRACE_ID=7
        WORMHOLE_HEADERS={}

        """)
  }

  @Test func ofTwoKeysWithOneNameTheFirstInOrderIsUsed() throws {
    let stage = try Stage()
    _ = try stage.done(
      "wormhole send --to watch --header a_b=4 --header a.b=3 --header a-b=2 --header A.B=1 x")
    let output = try stage.done(
      "wormhole receive --as watch --count 1 --exec '\(Self.printing)'")
    #expect(output.hasSuffix("}\nWORMHOLE_HEADER_A_B=1\n"), "\(output)")
  }

  @Test(arguments: ["LD_PRELOAD", "PATH", "WORMHOLE_CONTAINER", "WORMHOLE_MESSAGE_FROM"])
  func aSenderSetsNoOtherVariable(_ name: String) throws {
    let stage = try Stage()
    let send = "wormhole send --to watch --header \(name)=/forged --header A=/forged"
    _ = try stage.done("\(send) x; \(send) --from till y")
    let output = try stage.done(
      "wormhole receive --as watch --count 2 "
        + "--exec 'cat >/dev/null; env | grep /forged | LC_ALL=C sort'")
    let expected = """
      WORMHOLE_HEADERS={"A":"/forged","\(name)":"/forged"}
      WORMHOLE_HEADER_A=/forged
      WORMHOLE_HEADER_\(name)=/forged

      """
    #expect(output == expected + expected)
  }

  @Test func aRequestHasThem() throws {
    let stage = try Stage()
    let replier = try stage.start(
      "wormhole reply --as watch --verbose --count 1 --json --exec \"$LINE\"",
      environment: ["LINE=\(Self.printing)"])
    try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
    let reply = try stage.done("wormhole request --to watch --header trace-id=7 hello")
    #expect(reply == "WORMHOLE_HEADERS={\"trace-id\":\"7\"}\nWORMHOLE_HEADER_TRACE_ID=7\n")
    #expect(try replier.outcome().output.contains(#""headers":{"trace-id":"7"}"#))
  }

  @Test func objectsShowThem() throws {
    let stage = try Stage()
    let part = #""headers":{"k":"v"}"#
    let send = "wormhole send --to watch --from till --id one --header k=v hello --json"
    #expect(try stage.done(send).contains(part))
    #expect(try stage.done("wormhole queue watch --json").contains(part))
    let refused = try stage.makeDeadLetter(of: "watch", by: "receive --as watch")
    #expect(refused.status == .exited(1))
    #expect(try stage.done("wormhole queue watch --dead --json").contains(part))
    _ = try stage.done("wormhole queue watch --retry one")
    #expect(try stage.done("wormhole receive --as watch --count 1 --json").contains(part))
  }

  @Test(arguments: [
    ("--header a", "cannot use '--header a': the form is K=V"),
    ("--header =v", "cannot use '--header =v': the form is K=V"),
    ("--header a=1 --header a=2", "cannot use '--header a=2': 'a' is given twice"),
    ("--header 'a b=1'", "the key 'a b' of a header contains another character than"),
  ])
  func mistakesAreReported(_ options: String, _ text: String) throws {
    let stage = try Stage()
    for verb in ["send", "send --immediate", "request"] {
      let outcome = try stage.run("wormhole \(verb) --to watch \(options) hello")
      #expect(outcome.status == .exited(64), "\(verb)")
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
    }
  }
}
