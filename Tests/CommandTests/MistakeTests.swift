import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Mistakes of users, and the command's response: text and status.
@Suite(.blocking, .notSanitized("about what a command prints")) struct MistakeTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func check(
    _ command: String, _ status: Int32, errors: String, output: String = "",
    environment: [String] = []
  ) throws {
    let outcome = try stage.run(command, environment: environment)
    #expect(outcome.status.code == status, "\(command): \(outcome.errors)")
    #expect(stage.normal(outcome.errors) == errors)
    #expect(outcome.output == output)
  }

  // MARK: Programs that are not there

  @Test func aLockSaysWhyItsCommandDidNotRun() throws {
    try check(
      "wormhole lock x -- ./missing", 127,
      errors: "wormhole: cannot run './missing': no such file or directory\n")
    try check(
      "touch plain && wormhole lock x -- ./plain", 126,
      errors: "wormhole: cannot run './plain': permission denied; check the owner and the "
        + "permissions of the file or directory, and of its parents\n")
    // An empty entry in PATH is the working directory.
    let inPath = try stage.run("PATH=\":$PATH\" wormhole lock x -- plain")
    #expect(inPath.status == .exited(126))
    #expect(inPath.errors.hasPrefix("wormhole: cannot run 'plain': permission denied"))
    try check(
      "wormhole lock x -- sh -c 'wormhole lock y --timeout 0 -- true && touch z; "
        + "wormhole lock x --timeout 5 -- true'", 125,
      errors: "wormhole: cannot lock 'x': this command runs inside the same lock; the lock is free "
        + "when the command that holds the lock has ended\n")
    #expect(try stage.directory.descriptor.names().contains("z"))
  }

  @Test(arguments: ["--flows", "--states"])
  func aBridgeNeedsAStreamOfEachKind(_ option: String) throws {
    try check(
      "wormhole bridge setup \(option) 0", 64,
      errors: "wormhole: cannot use \(option) N: '0' is not a whole number of at least 1\n")
  }

  @Test(arguments: ["K", "=V"])
  func aVariableOfALaunchCommandHasANameAndAValue(_ setting: String) throws {
    try check(
      "wormhole wake clock --register --env '\(setting)' -- true", 64,
      errors: "wormhole: cannot use --env K=V: '\(setting)' is not of the form K=V\n")
  }

  @Test func nothingIsReceivedThatCouldNotBeTaken() throws {
    _ = try stage.run("wormhole send --to tv one")
    try check(
      "wormhole receive --as tv --files missing", 64,
      errors: "wormhole: cannot use --files 'missing': no such file or directory\n")
    #expect(try stage.run("wormhole members").output == "")
    try check(
      "wormhole receive --as tv --exec ./missing 2>/dev/null", 127, errors: "")
    try check(
      "touch plain; wormhole receive --as tv --exec ./plain 2>&1 | tail -n 1; wormhole queue tv "
        + "--dead", 0,
      errors: "",
      output: "wormhole: cannot continue: a program of './plain' is not executable; the message "
        + "waits for the next process that joins\n")
    // However often it is tried.
    for _ in 1...3 {
      let tried = try stage.run("wormhole receive --as tv --attempts 1 --exec ./missing")
      #expect(tried.status == .exited(127))
    }
    #expect(try stage.run("wormhole queue tv | cut -f2").output == "waiting\n")
    let received = try stage.run("wormhole receive --as tv --count 1 --json").output
    #expect(received.contains(#""attempt":1,"#) && received.contains(#""value":"one"}"#))
  }

  // MARK: What would wait for itself

  @Test func anUpdateInsideAnUpdateIsRefusedAtOnce() throws {
    _ = try stage.run("wormhole put x 1; wormhole put y 1; wormhole --container other put x 1")
    let begin = Instant.now
    for inner in ["put x 2", "update x --add 1", "clear y", "defaults write a b c"] {
      let outcome = try stage.run("wormhole update x --exec 'wormhole \(inner)'")
      #expect(outcome.status == .exited(70))
      #expect(outcome.errors.contains("this command runs inside an update of the same container"))
    }
    // Each command that waited for itself would wait thirty seconds.
    #expect(Instant.now - begin < .seconds(25))
    #expect(try stage.run("wormhole get x").output == "1\n")
    let elsewhere = try stage.run(
      "wormhole update x --exec 'wormhole get y && wormhole --container other put x 2'")
    #expect(elsewhere.errors == "")
  }

  /// A lock inside another lock, or inside an update, hides neither.
  @Test func whatEnclosesALockEnclosesItsProgram() throws {
    try check(
      "wormhole lock x -- wormhole lock y -- wormhole lock x --timeout 1 -- echo never", 125,
      errors: "wormhole: cannot lock 'x': this command runs inside the same lock; the lock is free "
        + "when the command that holds the lock has ended\n")
    let update = try stage.run(
      "wormhole update x --exec 'wormhole lock y -- wormhole put z 2'; wormhole get z")
    #expect(
      update.errors.contains("this command runs inside an update of the same container"),
      "\(update.errors)")
    #expect(update.output == "")
  }

  /// A program that an ended update has left running is inside no update any more.
  @Test func afterItsEndAnUpdateEnclosesNothing() throws {
    let left = try stage.run(
      "mkfifo pipe end && wormhole update x --exec '(read -r go <pipe; wormhole put y later; "
        + "echo $? >end) >/dev/null 2>&1 & echo 3' && echo go >pipe && cat end && wormhole get y")
    #expect(left.output == "0\nlater\n", "\(left.errors)")
  }

  /// Only errors that mean 'no' are left out.
  @Test func quietHidesNoMistake() throws {
    let missing = try stage.run("wormhole get nothing --quiet")
    #expect(missing.status == .exited(1))
    #expect(missing.errors == "")
    let mistaken = try stage.run("wormhole get --quiet")
    #expect(mistaken.status == .exited(64))
    #expect(mistaken.errors.hasPrefix("wormhole: cannot get: CHANNEL is missing"))
  }

  // MARK: Time

  @Test func aLockIsWaitedForUntilTheTimeIsUp() throws {
    _ = try stage.run("mkfifo pipe")
    let holder = try stage.start("wormhole lock x -- sh -c 'echo held; read -r go <pipe'")
    try eventually("the lock is held") { try holder.output == "held\n" }
    let late = try stage.run("wormhole lock x --timeout 0.05 -- true")
    #expect(late.status == .exited(75))
    #expect(late.errors.hasPrefix("wormhole: cannot lock 'x': the deadline passed while waiting"))
    let waiter = try stage.start("wormhole lock x -- echo mine")
    try eventually("it says for whom it waits") { try waiter.errors.contains("\n") }
    #expect(
      try stage.normal(waiter.errors)
        == "wormhole: waiting for lock 'x', held by 'wormhole' (process N, running)\n")
    _ = try stage.run("echo go >pipe")
    #expect(try waiter.outcome().output == "mine\n")
  }

  @Test func whatIsWrittenWhenTimeIsUpWasInTime() throws {
    _ = try stage.run("wormhole put x 1")
    func watch(_ limit: Int) throws -> ProcessOutcome {
      try stage.run(
        "wormhole watch x --now --timeout \(limit)ms",
        environment: ["WORMHOLE_FAULTS=write@1:before:delay=\(limit + 400)"])
    }
    var outcome = try watch(300)
    // On a busy machine, the start may take longer.
    for limit in [1000, 4000, 16_000] where outcome.output == "" { outcome = try watch(limit) }
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    #expect(outcome.output == "1\n")
  }

  // MARK: What is where

  @Test func whatWasClosedIsNotReadFrom() throws {
    _ = try stage.run("wormhole put x 1")
    for command in ["send --to tv --lines", "put x", "send --to tv"] {
      try check(
        "wormhole \(command) <&-", 70,
        errors: command.hasSuffix("lines")
          ? "wormhole: 0 lines were sent\n"
            + "wormhole: cannot read 'standard input': bad file descriptor\n"
          : "wormhole: cannot read 'standard input': bad file descriptor\n")
    }
    #expect(try stage.run("wormhole get x").output == "1\n")
    #expect(try stage.run("wormhole get x >&-").status == .exited(70))
  }

  @Test func quittingShowsNoCrash() throws {
    _ = try stage.run("wormhole put x 1")
    let watch = try stage.start("wormhole watch x --verbose")
    try eventually("it watches") { try watch.errors.contains("watching") }
    _ = try stage.run("kill -QUIT \(watch.child.process)")
    let outcome = try watch.outcome()
    #expect(outcome.status == .signalled(3))
    #expect(outcome.errors == "wormhole: watching 'x'\n")
  }

  @Test func aContainerThatIsNotThereIsTold() throws {
    for command in [
      "watch x", "observe x", "get x --wait", "defaults watch x",
    ].map({ $0 + " --timeout 0" }) {
      let outcome = try stage.run(
        "wormhole --container tpyo \(command)")
      #expect(outcome.errors.hasPrefix("wormhole: there was no container at 'tpyo'; created it\n"))
      #expect(outcome.status == .exited(1), "\(command)")
      // The container was made, as the message stated.
      #expect(try stage.run("rm -r tpyo").status == .exited(0))
    }
    try check("wormhole --container new put x 1", 0, errors: "")
    try check("wormhole --container new members", 0, errors: "")
  }

  /// A directory without a container has no member whose home could move.
  @Test func aMoveOfAHomeMakesNoContainer() throws {
    let outcome = try stage.run(
      "wormhole --container tpyo bridge move bob --to 0123456789abcdef "
        + "--nats nats://127.0.0.1:1 --open-server --timeout 0")
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("the directory does not exist"), "\(outcome.errors)")
    #expect(try !stage.directory.descriptor.names().contains("tpyo"))
  }

  // MARK: Words

  @Test func aSlipOfThePenIsUnderstood() throws {
    let verb = "wormhole: cannot run"
    try check(
      "wormhole pit x 1", 64,
      errors: "\(verb) 'pit': there is no such verb; "
        + "did you mean 'put'?\n")
    try check(
      "wormhole wacth x", 64,
      errors: "\(verb) 'wacth': there is no such verb; "
        + "did you mean 'watch'?\n")
    try check(
      "wormhole zebra", 64,
      errors: "\(verb) 'zebra': there is no such verb; "
        + "try 'wormhole --help'\n")
    try check(
      "wormhole put x 1 --tpye json", 64,
      errors: "wormhole: cannot use '--tpye': there is "
        + "no such option; did you mean '--type'?\n")
  }

  @Test func theTextOfNilIsRefusedWithItsPath() throws {
    try check(
      #"wormhole put x '{"a": [1, "$null"]}' --type json"#, 65,
      errors: "wormhole: cannot use the json for 'x': at 'a[1]': the text '$null', which property "
        + "lists read as null (byte 10)\n")
    try check(
      #"wormhole put x '"$null"' --type json"#, 65,
      errors: "wormhole: cannot use the json for 'x': the text '$null', which property lists read "
        + "as null (byte 0)\n")
  }

  @Test func nullTravelsAsNil() throws {
    for text in [#"{"a":[1,null],"b":null}"#, "[null]"] {
      try check("wormhole put x '\(text)' --type json", 0, errors: "")
      #expect(try stage.run("wormhole get x").output == text + "\n")
    }
    try check("wormhole put x null --type json", 0, errors: "")
    #expect(try stage.run("wormhole get x --json").output.contains(#""value":null"#))
  }

  @Test func theTypesOfDefaultsAreTakenToo() throws {
    for (words, value) in [
      ("-int 12", "12\n"), ("-bool YES", "true\n"), ("-string 12", "12\n"), ("-float 0.5", "0.5\n"),
    ] {
      try check("wormhole defaults write cinema k \(words)", 0, errors: "")
      #expect(try stage.run("wormhole defaults read cinema k").output == value)
    }
    try check("wormhole defaults write cinema -int k 1", 0, errors: "")
    try check(
      "wormhole defaults write cinema k -bool perhaps", 64,
      errors: "wormhole: cannot use "
        + "'-bool': 'perhaps' is neither yes nor no\n")
  }
}
