import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// What operators expect of the command after other tools.
@Suite(.blocking, .notSanitized("about what a command prints")) struct OperatorTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func check(
    _ command: String, _ status: Int32 = 0, output: String = "", errors: String = "",
    _ place: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try stage.run(command)
    #expect(outcome.status.code == status, "\(command): \(outcome.errors)", sourceLocation: place)
    #expect(outcome.output == output, sourceLocation: place)
    #expect(stage.normal(outcome.errors) == errors, sourceLocation: place)
  }

  // MARK: Durations

  @Test(arguments: [
    ("0", Duration.zero), ("5", .seconds(5)), ("0.5", .milliseconds(500)), ("1e3", .seconds(1000)),
    ("300ms", .milliseconds(300)), ("5s", .seconds(5)), ("2m", .seconds(120)),
    ("1.5h", .seconds(5400)), ("1d", .seconds(86_400)), ("1000000000", .seconds(1_000_000_000)),
  ])
  func aDurationMayHaveAUnit(_ text: String, _ duration: Duration) {
    #expect(Duration(text: text) == duration)
  }

  @Test(arguments: [
    "", "s", "ms", "5x", "5 s", "-1s", "-1", "nan", "inf", "infd", "5ss", "1000000001", "20000d",
  ])
  func anythingElseIsNoDuration(_ text: String) { #expect(Duration(text: text) == nil) }

  @Test func everyVerbTakesUnits() throws {
    try check("wormhole get x --wait --timeout 10ms --quiet", 1)
    try check("wormhole lock x --timeout 0s --take-over 1m -- true")
    try check("wormhole send --to tv --ttl 2h --delay 1h later --header a=b")
    #expect(try stage.run("wormhole queue tv").output.contains("\tdelayed until "))
    try check(
      "wormhole queue tv --purge --older-than 1h --verbose", errors: note("0 messages were"))
    try check("wormhole queue tv --purge --kind Other --verbose", errors: note("0 messages were"))
    try check("wormhole queue tv --purge --older-than 0ms --verbose", errors: note("1 message was"))
    try check(
      "wormhole watch x --timeout 5parsecs", 64,
      errors: "wormhole: cannot use --timeout D: '5parsecs' is not a duration; use a number of "
        + "seconds, or a unit as in 300ms, 5s, 2m, 1h or 1d\n")
  }

  private func note(_ words: String) -> String { "wormhole: \(words) cancelled\n" }

  // MARK: Values

  @Test func severalChannelsAreReadAtOnce() throws {
    try check("wormhole put seat.a one; wormhole put seat.b 2 --number; wormhole put film M")
    try check("wormhole get film seat.b", output: "film\tM\nseat.b\t2\n")
    try check("wormhole get --prefix seat.", output: "seat.a\tone\nseat.b\t2\n")
    let objects = try stage.run("wormhole get --prefix seat. --json").output
    #expect(objects.split(separator: "\n").count == 2)
    #expect(objects.contains(#""channel":"seat.b""#))
    let missing = "wormhole: cannot read channel 'no': the channel has no value\n"
    try check("wormhole get film no seat.b", 1, output: "film\tM\nseat.b\t2\n", errors: missing)
    try check(
      "wormhole get --prefix row.", 1,
      errors: "wormhole: cannot read channels 'row.': no channel with this prefix has a value\n")
    try check(
      "wormhole get film seat.a --raw", 64,
      errors: "wormhole: cannot get: --raw requires one channel\n")
    try check(
      "wormhole get film --prefix seat", 64,
      errors: "wormhole: cannot get: --prefix excludes CHANNEL and --wait\n")
    let reader = try stage.start("wormhole get film later --wait --timeout 60s")
    try check("wormhole put later now")
    #expect(try reader.outcome().output == "film\tM\nlater\tnow\n")
  }

  /// A script takes the status 1 for a value that was never put.
  @Test(arguments: ["bad no", "no bad"])
  func aMissingValueHidesNoDamagedOne(_ channels: String) throws {
    try check("wormhole put film M && wormhole put bad 1 && rm -f hole/channels/bad/kept.plist")
    try check("echo damaged >new && mv new hole/channels/bad/value.plist")
    let outcome = try stage.run("wormhole get film \(channels)")
    #expect(outcome.status == .exited(65))
    #expect(outcome.output == "film\tM\n")
    #expect(outcome.errors.contains("cannot read channel 'bad': "))
    #expect(outcome.errors.contains("cannot read channel 'no': the channel has no value"))
    let quiet = try stage.run("wormhole get \(channels) --quiet")
    #expect(quiet.status == .exited(65))
    #expect(quiet.errors.hasPrefix("wormhole: cannot read channel 'bad': "))
  }

  @Test func aNumberIsPutAsOne() throws {
    for (text, printed) in [("88", "88"), ("-0.5", "-0.5"), ("18446744073709551615", nil)] {
      try check(
        "wormhole put n \(text) --number && wormhole get n", output: (printed ?? text) + "\n")
    }
    try check("echo 7 | wormhole put n --number && wormhole update n --add 1", output: "8\n")
    try check(
      "wormhole put n many --number", 65,
      errors: "wormhole: cannot use the value for 'n': it is not a number\n")
    try check(
      "wormhole put n 1 --number --type json", 64,
      errors: "wormhole: cannot put: --number and --type exclude each other; give one of them\n")
    #expect(try stage.run("wormhole get n --json").output.contains(#""value":8,"#))
  }

  @Test func aTextThatIsANumberIsAddedTo() throws {
    try check("wormhole put visits 41 && wormhole update visits --add 1", output: "42\n")
    #expect(try stage.run("wormhole get visits --json").output.contains(#""value":42,"#))
    try check("wormhole put visits 0.5 && wormhole update visits --add 1", output: "1.5\n")
    try check("wormhole put visits '41 ' && wormhole update visits --add 1 2>/dev/null", 65)
    try check("wormhole get visits", output: "41 \n")
  }

  @Test func aValueMayExpire() throws {
    try check("wormhole put online yes --ttl 1h && wormhole get online", output: "yes\n")
    let object = try stage.run("wormhole get online --json").output
    #expect(object.contains(/"expiresAt":"[0-9]/))
    for time in ["0", "abc"] {
      try check(
        "wormhole put online yes --ttl \(time)", 64,
        errors: "wormhole: cannot use --ttl D: '\(time)' is not a duration above 0; use a number "
          + "of seconds, or a unit as in 300ms, 5s, 2m, 1h or 1d\n")
    }
    // The watcher is notified, however late it is started.
    try check(
      "wormhole put online soon --ttl 300ms && wormhole watch online --now --timeout 60 --prefix "
        + "| grep -m 1 cleared", output: "online\t(cleared)\n")
    try check("wormhole get online --quiet", 1)
    try check("wormhole list")
    let found = try stage.run("wormhole doctor").output
    #expect(found.contains("channels/online: the value has expired"))
    let repaired = try stage.run("wormhole doctor --repair").output
    #expect(repaired.contains("repaired  channels/online: the value has expired"))
    #expect(!(try stage.run("wormhole doctor").output.contains("has expired")))
    try check("wormhole update online --add 1", output: "1\n")
  }

  // MARK: Words of other tools

  @Test func synonymsNameTheVerbToUse() throws {
    for (word, uses) in [
      ("set", "'put'"), ("del", "'clear' or 'remove channel'"), ("rm", "'clear' or 'remove'"),
      ("ls", "'list'"), ("pub", "'put' or 'send' or 'post'"),
      ("subscribe", "'watch' or 'receive' or 'observe'"), ("version", "'--version'"),
      ("publish", "'put' or 'send' or 'post'"), ("sub", "'watch' or 'receive' or 'observe'"),
    ] {
      try check(
        "wormhole \(word) x", 64,
        errors: "wormhole: cannot run '\(word)': there is no such verb; use \(uses)\n")
    }
    try check(
      "wormhole help set", 64,
      errors: "wormhole: cannot help with 'set': there is no such verb; use 'put'\n")
    #expect(try stage.run("wormhole top").status == .exited(64))
    for synonym in Table.wormhole.synonyms {
      #expect(Table.wormhole.verb(synonym.word) == nil, "a verb is no synonym")
    }
  }

  @Test func aCommandNeedsDashesBeforeIt() throws {
    let advice = "put '--' before the command\n"
    for words in ["lock build make", "lock build make -j4", "lock build make --jobs 4"] {
      try check(
        "wormhole \(words)", 64,
        errors: "wormhole: cannot lock: unexpected argument 'make'; \(advice)")
    }
    try check(
      "wormhole wake usher --register usherd --verbose-usher", 64,
      errors: "wormhole: cannot wake: unexpected argument 'usherd'; \(advice)")
    try check(
      "wormhole lock build", 64, errors: "wormhole: cannot lock: no command is given; \(advice)")
    try check(
      "wormhole coordinate read notes tar", 64,
      errors: "wormhole: cannot coordinate: no command is given; \(advice)")
  }

  /// The outcomes of a member are not what other tools clear.
  @Test func clearingAQueueIsRefused() throws {
    try check("wormhole send --to tv one")
    #expect(try stage.run("wormhole queue tv --clear").status == .exited(64))
    #expect(try stage.run("wormhole queue tv").output.contains("\twaiting\t"))
  }

  @Test func theVerbsOfTheDropInsHaveAHeading() throws {
    for option in ["-h", "--help"] {
      let lines = try stage.run("wormhole \(option)").output.split(
        separator: "\n", omittingEmptySubsequences: false)
      let heading = try #require(lines.firstIndex(of: "Verbs for the drop-in modules:"))
      #expect(lines[heading - 1] == "")
      #expect(lines[heading + 1].hasPrefix("  watchconnectivity  "))
      #expect(lines[..<heading].contains { $0.hasPrefix("  put  ") })
      #expect(!lines[..<heading].contains { $0.hasPrefix("  watchconnectivity ") })
    }
  }

  // MARK: Failures

  @Test func aBusyLockIsToldFromTheCommandsOwnStatus() throws {
    _ = try stage.run("mkfifo pipe")
    let holder = try stage.start(
      "wormhole lock x -- wormhole coordinate write file -- sh -c 'echo held; read -r go <pipe'",
      environment: ["WORMHOLE_ROOT=\(stage.directory.path)/groups"])
    try eventually("both are held") { try holder.output == "held\n" }
    for verb in ["lock x", "coordinate write file"] {
      for (options, status) in [
        ("", Int32(75)), ("--conflict-exit-code 3", 3), ("--conflict-exit-code 0", 0),
      ] {
        let busy = try stage.run(
          "WORMHOLE_ROOT=\"$STAGE/groups\" wormhole \(verb) --timeout 50ms \(options) --quiet "
            + "-- echo mine")
        #expect(busy.status.code == status, "\(verb) \(options)")
        #expect(busy.errors.contains("the deadline passed"), "quiet hides no failure")
        #expect(busy.output == "")
      }
    }
    _ = try stage.run("echo go >pipe")
    _ = try holder.outcome()
    try check("wormhole lock x --timeout 60 --conflict-exit-code 3 -- sh -c 'exit 1'", 1)
    try check(
      "wormhole lock x --conflict-exit-code 256 -- true", 64,
      errors: "wormhole: cannot use --conflict-exit-code N: '256' is not a whole number from 0 "
        + "to 255\n")
  }

  @Test func quietHidesNoFailure() throws {
    let replier = try stage.start(
      "wormhole reply --as till --verbose --exec 'echo closed >&2; exit 3' --count 1")
    try eventually("it replies") { try replier.errors.contains("replying as 'till'") }
    try check(
      "wormhole request --to till it --quiet", 1,
      errors: "wormhole: cannot get a reply from 'till': the command ended with status 3: closed\n")
    _ = try replier.outcome()
  }

  @Test func aContainerThatCannotBeMadeIsAFailure() throws {
    for verb in ["put x 1", "update x --add 1", "send --to tv x", "get x --wait --timeout 0"] {
      try check(
        "wormhole --container no/where \(verb) --quiet", 78,
        errors: "wormhole: cannot open container 'no/where': its parent directory does not "
          + "exist\n")
    }
    // A reader of a container that does not exist finds nothing there.
    try check("wormhole --container no/where get x --quiet", 1)
  }
}
