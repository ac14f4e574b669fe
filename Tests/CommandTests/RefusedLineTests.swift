import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Command lines and lines of dumps that are refused, each for its own reason.
@Suite(.blocking, .notSanitized("about what a command prints")) struct RefusedLineTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  static let commands = [
    ("events --kind mails", "cannot use '--kind mails': the choices are channel, setting, "),
    ("bridge dance", "cannot dance a bridge: the actions are "),
    (
      "bridge status more",
      "cannot run 'bridge status': unexpected argument 'more'; try 'wormhole help bridge'"
    ),
    (
      "bridge",
      "cannot carry between machines: the group is not named; use --group ID, or, with "
        + "--container, --shared-as G"
    ),
    (
      "bridge evict 0123456789abcdef",
      "cannot run 'bridge evict': the group is not named; use --group ID, or --shared-as G"
    ),
    (
      "bridge evict till",
      "cannot run 'bridge evict': 'till' is not a machine: a machine has 16 hexadecimal digits; "
    ),
    ("bridge move bob --to till", "'till' is not a machine: a machine has 16 hexadecimal digits"),
    ("bridge move bob", "cannot move 'bob': the new home is not named; use --to M"),
    ("bridge move", "cannot run 'bridge move': the member is not named; try 'wormhole help "),
    (
      "queue tv --dead --purge",
      "cannot list or change a queue: --dead and --purge exclude each other; give one of them"
    ),
    (
      "queue tv --older-than 1",
      "cannot list or change a queue: --older-than requires --purge or --discard-all"
    ),
    ("queue", "cannot list or change a queue: NAME is missing; try 'wormhole help queue'"),
    ("status more", "cannot show the status: unexpected argument 'more'; try "),
    ("members more", "cannot list the members: unexpected argument 'more'; try "),
    ("doctor more", "cannot check the container: unexpected argument 'more'; try "),
    ("events more", "cannot print the events: unexpected argument 'more'; try "),
    ("demo more", "cannot show the demonstration: unexpected argument 'more'; try "),
    ("manual more", "cannot print the manual page: unexpected argument 'more'; try "),
    ("help get more", "cannot print the help: unexpected argument 'more'; try "),
    ("completions", "cannot print the completions: SHELL is missing; try "),
    ("defaults read a b c", "cannot read defaults: unexpected argument 'c'; try "),
    ("status --interval 1", "cannot show the status: --interval requires --watch"),
    (
      "status --watch --interval 0.09",
      "cannot use --interval D: '0.09' is not a duration of at least 0.1s; use "
    ),
    ("put online yes --ttl 0", "cannot use --ttl D: '0' is not a duration above 0; use "),
    ("put online yes --ttl abc", "cannot use --ttl D: 'abc' is not a duration above 0; use "),
    ("send --to tv --delay 31d x", "--delay D: '31d' is not a duration of at most 30d; "),
    (
      "receive --as tv --exec cat --files .",
      "cannot receive: --exec and --files exclude each other"
    ),
    (
      "receive --as tv --kind k --contexts",
      "cannot receive: --kind and --contexts exclude each other"
    ),
    ("receive --as tv --json --raw", "cannot receive: --json and --raw exclude each other"),
    ("send --to tv --lines --id i", "cannot send: --lines and --id exclude each other"),
    ("send --to tv --lines --wait", "cannot send: --lines and --wait exclude each other"),
    ("send --to tv --lines x", "--lines reads standard input, and does not send 'x'"),
    ("send --to tv --file f --delay 1", "cannot send: --file and --delay exclude each other"),
    ("send --to tv --file f --lines", "cannot send: --file and --lines exclude each other"),
    ("send --to tv --move x", "cannot send: --move requires --file"),
    (
      "send --to tv --context --from a --ttl 1 x",
      "cannot send: --context and --ttl exclude each other"
    ),
    (
      "send --to tv --immediate --urgent x",
      "cannot send: --immediate and --urgent exclude each other"
    ),
    ("send --to tv --timeout 1 x", "cannot send: --timeout requires --wait or --immediate"),
    ("send --to tv --wake x", "cannot send: --wake requires --immediate; "),
    ("send --to tv --context x", "cannot send: --context requires --from"),
  ]

  @Test(arguments: commands) func aMistakeIsAUsageError(_ command: String, _ words: String) throws {
    let outcome = try stage.run("wormhole \(command)")
    #expect(outcome.status == .exited(64), "\(outcome.errors)")
    #expect(outcome.errors.contains(words), "\(outcome.errors)")
    #expect(outcome.output == "")
    // Nobody has joined, and nothing was made.
    #expect(try stage.run("wormhole members").output == "")
  }

  @Test func aBridgeThatNeverServedHasNoStatus() throws {
    _ = try stage.run("wormhole put a 1")
    let outcome = try stage.run("wormhole bridge status")
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("no bridge has ever served this container"))
  }

  static let lines = [
    (#"{"suite":"s"}"#, "'values' is missing"),
    (#"{"piece":"?"}"#, "'piece' is not in base64"),
    (#"{"piece":1}"#, "'piece' is missing, or not a text"),
    (#"{"channel":"x","value":1,"expiresAt":"soon"}"#, "'expiresAt' is not a date"),
    (
      #"{"message":"m","to":"t","kind":"k","headers":{"a":1},"value":1}"#,
      "the header 'a' is not a text"
    ),
    (#"{"channel":"x","value":{"type":1,"value":1}}"#, "the 'type' of a value is not a text"),
    (#"{"message":"m","kind":"k","value":1}"#, "'to' is missing, or not a text"),
    (#"{"message":"m","queue":"t","value":1}"#, "'kind' is missing, or not a text"),
    (#"{"wormhole":2}"#, "the dump has another form than 1"),
    (#"{"nothing":2}"#, "not a line of a dump: no key states its kind"),
  ]

  @Test(arguments: lines) func aLineIsRefusedForItsReason(_ line: String, _ words: String) throws {
    try stage.directory.write("\(line)\n", to: "d")
    let outcome = try stage.run("wormhole restore <d")
    #expect(outcome.status == .exited(65), "\(outcome.errors)")
    #expect(outcome.errors.contains("cannot restore line 1: \(words)"), "\(outcome.errors)")
    #expect(try stage.run("wormhole channels; wormhole queue t").output == "")
  }

  /// As of two dumps in one file: the end counts the lines of the first dump only.
  @Test func aLineAfterTheLastOneIsRefused() throws {
    let lines = [
      #"{"channel":"a","value":1}"#, #"{"end":[1,0,0]}"#, #"{"channel":"b","value":1}"#,
    ]
    try stage.directory.write(lines.joined(separator: "\n") + "\n", to: "d")
    let outcome = try stage.run("wormhole restore <d")
    #expect(outcome.status == .exited(65), "\(outcome.errors)")
    #expect(outcome.errors.contains("line 3: a line after the last one"), "\(outcome.errors)")
    #expect(try stage.run("wormhole get b").status == .exited(1))
  }

  @Test func theFileOfAMessageIsWhole() throws {
    let message =
      #"{"message":"m","to":"t","kind":"k","file":{"name":"f","size":10}}"# + "\n"
    try stage.directory.write(message + #"{"channel":"x","value":1}"# + "\n", to: "d")
    let interrupted = try stage.run("wormhole restore <d")
    #expect(interrupted.status == .exited(65))
    #expect(
      interrupted.errors.contains("line 2: the file of the message before is incomplete"),
      "\(interrupted.errors)")
    try stage.directory.write(message + #"{"piece":"YWFh"}"# + "\n", to: "d")
    let cut = try stage.run("wormhole restore <d")
    #expect(cut.status == .exited(65))
    #expect(
      cut.errors.contains("cannot restore message 'm': the dump ends inside its file"),
      "\(cut.errors)")
    #expect(try stage.run("wormhole channels; wormhole queue t").output == "")
  }

  @Test func aSettingIsReplacedOnRequestOnly() throws {
    _ = try stage.run("wormhole defaults write s a 1; wormhole defaults write s c 3")
    try stage.directory.write(#"{"suite":"s","values":{"a":2,"b":2}}"# + "\n", to: "d")
    let refused = try stage.run("wormhole restore <d")
    #expect(refused.errors.contains("the key 'a' has a value"), "\(refused.errors)")
    #expect(refused.errors.contains("replace the values of such keys with --replace"))
    #expect(try stage.run("wormhole defaults read s b").status == .exited(1))
    #expect(try stage.run("wormhole defaults read s a").output == "1\n")
    #expect(try stage.run("wormhole restore --replace <d").status == .exited(0))
    for (key, value) in [("a", 2), ("b", 2), ("c", 3)] {
      #expect(try stage.run("wormhole defaults read s \(key)").output == "\(value)\n")
    }
  }

  /// The lines before the invalid one are sent, and counted.
  @Test func ofLinesToSendTheFirstInvalidOneIsNamed() throws {
    let outcome = try stage.run("printf '1\\nx\\n2\\n' | wormhole send --to tv --lines --type json")
    #expect(outcome.status == .exited(65), "\(outcome.errors)")
    #expect(outcome.errors.hasPrefix("wormhole: 1 line was sent\n"), "\(outcome.errors)")
    #expect(outcome.errors.contains("'line 2'"), "\(outcome.errors)")
    #expect(try stage.run("wormhole queue tv | wc -l").output.contains("1"))
  }
}
