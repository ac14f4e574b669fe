import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Verbs that wait: for changes, values, postings.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct WaitingVerbTests {
  /// Starts a verb that prints a line on standard error when it is ready.
  private func start(_ command: String, _ stage: Stage) throws -> Running {
    let running = try stage.start(command + " --verbose")
    try eventually("'\(command)' is ready") {
      try running.errors.contains(/wormhole: (watching|observing|waiting)/)
    }
    return running
  }

  private func put(_ words: String, _ stage: Stage) throws {
    let outcome = try stage.run("wormhole " + words)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  @Test func eachChangeIsALine() throws {
    let stage = try Stage()
    let watch = try start("wormhole watch speed --count 6", stage)
    var expected = ""
    for (words, line) in [
      ("put speed slow", "slow"), ("put speed slow", "slow"), ("clear speed", "(cleared)"),
      ("put speed '(cleared)'", #""(cleared)""#),
      ("put speed 'one\ntwo'", #""one\ntwo""#), ("update speed --exec 'echo 7' --type json", "7"),
    ] {
      try put(words, stage)
      expected += line + "\n"
      try eventually("'\(line)' is told") { try watch.output == expected }
    }
    #expect(try watch.outcome().status == .exited(0))
  }

  /// The command syncs its value after the notice, and before it ends.
  @Test(arguments: ["put speed fast", "update speed --exec 'echo fast'", "clear speed"])
  func aChangeIsToldBeforeTheDiskHasIt(_ words: String) throws {
    let stage = try Stage()
    for value in ["slow", "slower"] { try put("put speed \(value)", stage) }
    let kept = stage.container + "/channels/speed/kept.plist"
    #expect(try TestSupport.run("touch", ["-d", "1 hour ago", kept]).status == .exited(0))
    let watch = try start("wormhole watch speed --count 1", stage)
    let change = try stage.start(
      "wormhole " + words, environment: ["WORMHOLE_FAULTS=fsync:before:stop"])
    try change.waitUntilStopped()
    let outcome = try watch.outcome()
    #expect(outcome.output == (words == "clear speed" ? "(cleared)\n" : "fast\n"))
    try change.child.send(.go)
    #expect(try change.outcome().status == .exited(0))
    let value = stage.container + "/channels/speed/value.plist"
    #expect(
      try Descriptor.status(ofPath: kept, following: false)
        .isSameFile(as: Descriptor.status(ofPath: value, following: false)))
  }

  @Test(arguments: [
    "watch speed", "watch --prefix s", "get speed --wait", "observe ready", "defaults watch suite",
  ])
  func aContainerThatIsRemovedEndsIt(_ words: String) throws {
    let stage = try Stage()
    let running = try start("wormhole " + words, stage)
    #expect(try stage.run("rm -r \"$WORMHOLE_CONTAINER\"").status == .exited(0))
    let outcome = try running.outcome()
    #expect(outcome.status == .exited(78))
    #expect(outcome.errors.contains("was removed"))
  }

  /// With a count, fewer changes are not enough.
  @Test(arguments: [("--count 2", Int32(1)), ("--count 1", 0), ("", 0)])
  func theDeadlinePassesBeforeEnoughHasArrived(_ count: String, _ status: Int32) throws {
    let stage = try Stage()
    try put("put speed slow", stage)
    func watch(_ seconds: Int) throws -> ProcessOutcome {
      try stage.run("wormhole watch speed --now --timeout \(seconds) \(count)")
    }
    var outcome = try watch(1)
    // On a busy machine, the start may take longer.
    if outcome.output == "" { outcome = try watch(20) }
    #expect(outcome.output == "slow\n")
    #expect(outcome.status == .exited(status), "\(outcome.errors)")
    #expect(outcome.errors.contains("only 1 arrived before the deadline") == (status == 1))
  }

  /// A channel that was cleared has no value yet.
  @Test func aValueOfAClearedChannelIsWaitedFor() throws {
    let stage = try Stage()
    for words in ["put speed slow", "clear speed"] { try put(words, stage) }
    let get = try start("wormhole get speed --wait", stage)
    try put("put speed fast", stage)
    let outcome = try get.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "fast\n")
  }

  @Test func severalChannelsAreToldApart() throws {
    let stage = try Stage()
    try put("put seat.a 1", stage)
    let watch = try start("wormhole watch seat. --prefix --now --json --count 2", stage)
    try eventually("what is there is told") { try watch.output.contains(#""channel":"seat.a""#) }
    try put("put row 1", stage)
    try put("put seat.b 2", stage)
    let outcome = try watch.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.split(separator: "\n").count == 2)
    #expect(outcome.output.contains(#""channel":"seat.b""#))
  }

  @Test func aCommandRunsForEachChange() throws {
    let stage = try Stage()
    let line = #"echo "$WORMHOLE_CHANNEL $WORMHOLE_VERSION $(cat)"; [ $WORMHOLE_VERSION = 1 ]"#
    let watch = try Running(
      Programs.built("wormhole"), ["watch", "speed", "--verbose", "--exec", line],
      environment: stage.environment)
    try eventually("it is ready") { try watch.errors.contains("watching") }
    try put("put speed slow", stage)
    try eventually("it has run") { try watch.output == "speed 1 slow\n" }
    try put("put speed fast", stage)
    let outcome = try watch.outcome()
    #expect(outcome.status == .exited(1))
    #expect(outcome.output == "speed 1 slow\nspeed 2 fast\n")
  }

  @Test func aValueIsWaitedFor() throws {
    let stage = try Stage()
    let get = try start("wormhole get answer --wait", stage)
    try put("put other 1", stage)
    try put("clear answer", stage)
    try put("put answer 42", stage)
    let outcome = try get.outcome()
    #expect(outcome.output == "42\n")
    #expect(try stage.run("wormhole get answer --wait --timeout 0").output == "42\n")
  }

  @Test func noValueComes() throws {
    let stage = try Stage()
    try put("post something", stage)
    let outcome = try stage.run("wormhole get answer --wait --timeout 0.05")
    #expect(outcome.status == .exited(1))
    #expect(outcome.output == "")
    #expect(
      outcome.errors
        == "wormhole: cannot read channel 'answer': no value arrived before the deadline\n")
  }

  /// The time limit passes after the claim of a message, and before its line is written: in the
  /// claim itself, or when the first attempt of a batch begins.
  @Test(arguments: [
    ("wormhole send --to tv one", "rename", "claimed/", 1, "after"),
    ("printf 'one\\ntwo\\n' | wormhole send --to tv --lines -", "pwrite", "/progress", 3, "before"),
  ])
  func aMessageClaimedTooLateIsNoAttempt(
    _ send: String, _ call: String, _ path: String, _ number: Int, _ moment: String
  ) throws {
    let stage = try Stage()
    #expect(try stage.run(send).status == .exited(0))
    var isMet = false
    // On a loaded machine, a short time limit may pass before the claim.
    for limit in [300, 1000, 4000] where !isMet {
      let outcome = try stage.run(
        "rm -f trace; wormhole receive --as tv --timeout \(limit)ms",
        environment: [
          "WORMHOLE_FAULTS=\(call)~\(path)@\(number):\(moment):delay=\(limit + 500)",
          "WORMHOLE_FAULT_TRACE=\(stage.directory.path)/trace",
        ])
      #expect(outcome.status == .exited(1), "\(outcome.errors)")
      #expect(outcome.output == "")
      let calls = try stage.run("cat trace").output.split(separator: "\n")
      isMet = calls.count { $0.contains(" \(call) ") && $0.contains(path) } >= number
    }
    #expect(isMet)
    let again = try stage.run("wormhole receive --as tv --count 1 --json").output
    #expect(again.contains(#""attempt":1,"#))
    #expect(again.contains(#""redelivered":false,"#))
    #expect(again.contains(#""value":"one""#))
  }

  @Test func aPostingIsHeard() throws {
    let stage = try Stage()
    let observe = try start("wormhole observe ready --count 2", stage)
    try put("post other", stage)
    try put("post ready", stage)
    try eventually("it is heard") { try observe.output == "ready\n" }
    try put("post ready", stage)
    #expect(try observe.outcome().status == .exited(0))
  }

  @Test func aChangedSettingIsHeard() throws {
    let stage = try Stage()
    let all = try start("wormhole defaults watch cinema --count 3", stage)
    let rows = try start("wormhole defaults watch cinema rows --count 2 --json", stage)
    let written = #"{"key":"rows","suite":"cinema","value":"12"}"# + "\n"
    for (words, line) in [
      ("write cinema rows 12", "rows\t12"), ("write cinema name Strand", "name\tStrand"),
      ("delete cinema rows", "rows\t(removed)"),
    ] {
      try put("defaults " + words, stage)
      try eventually("'\(line)' is told") { try all.output.hasSuffix(line + "\n") }
      // A value that is removed before this process looks would be no change to it.
      try eventually("the value is told") { try rows.output.hasPrefix(written) }
    }
    #expect(try all.outcome().status == .exited(0))
    #expect(
      try rows.outcome().output
        == written + #"{"key":"rows","suite":"cinema","value":null}"# + "\n")
  }

  // MARK: Ends

  @Test(arguments: [
    "watch speed", "observe ready", "get speed --wait", "defaults watch cinema",
    "watch speed --exec cat",
  ])
  func aSignalEndsItAtOnce(_ words: String) throws {
    for (signal, number) in [(Processes.Signal.interrupt, Int32(2)), (.terminate, 15)] {
      let stage = try Stage()
      try put("put other 1", stage)
      let before = try stage.state()
      let running =
        words.hasPrefix("observe")
        ? try observing(stage) : try start("wormhole " + words, stage)
      try running.child.send(signal)
      let outcome = try running.outcome()
      #expect(outcome.status == .signalled(number))
      #expect(outcome.output == "")
      #expect(try stage.state() == before)
    }
  }

  private func observing(_ stage: Stage) throws -> Running {
    try start("wormhole observe ready", stage)
  }

  /// The outcome of a watch whose command is asked to end, and then runs these words.
  private func outcomeOfWatch(ending words: String) throws -> ProcessOutcome {
    let stage = try Stage()
    let line = "trap 'kill $!; \(words)' TERM; sleep 600 & echo begun; wait"
    let watch = try stage.start(
      "wormhole watch speed --verbose --exec \"$LINE\"", environment: ["LINE=\(line)"])
    try eventually("it is ready") { try watch.errors.contains("watching") }
    try put("put speed 1", stage)
    try eventually("the command runs") { try watch.output == "begun\n" }
    try watch.child.send(.terminate)
    return try watch.outcome()
  }

  @Test func aSignalGoesToTheCommandOfAChange() throws {
    let outcome = try outcomeOfWatch(ending: "echo caught; exit 5")
    #expect(outcome.output == "begun\ncaught\n")
    #expect(outcome.status == .exited(5))
  }

  /// The watch would end with the status of the command, which may be 0 then; the signal to the
  /// watch is not forgotten.
  @Test func aSignalThatItsCommandTakesEndsItToo() throws {
    #expect(try outcomeOfWatch(ending: "exit 0").status == .signalled(15))
  }

  /// As in nohup(1): an ignored signal stays ignored, for the command and for its children.
  @Test func anIgnoredSignalStaysIgnored() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      "trap '' HUP; wormhole lock build -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo both go on'")
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "both go on\n")
  }

  @Test(arguments: [
    "put speed 1 && wormhole watch speed --now | head -1",
    "put speed 1 && wormhole watch speed --now --json | head -1",
    "defaults write speed a 1 && wormhole defaults watch speed --now | head -1",
    "put speed 1 && wormhole get speed | true", "help | true", "manual | true",
    "put speed 1 && (trap '' PIPE; wormhole watch speed --now | head -1)",
  ])
  func aClosedPipeEndsItQuietly(_ words: String) throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole " + words)
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
  }

  /// An obstacle to one value is reported, and the watch continues.
  @Test(arguments: ["--prefix ''", "b zlast", "b"])
  func damageEndsNoWatch(_ words: String) throws {
    let stage = try Stage()
    try put("put b 1", stage)
    let watch = try start("wormhole watch \(words) --count 1", stage)
    _ = try stage.run("rm -f hole/channels/b/kept.plist")
    _ = try stage.run("echo damaged >new && mv new hole/channels/b/value.plist")
    try eventually("the damage is told") { try watch.errors.contains("cannot read channel 'b'") }
    try put(words == "b" ? "put b 2" : "put zlast 2", stage)
    let outcome = try watch.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == (words == "b" ? "2\n" : "zlast\t2\n"))
  }

  /// A caller tries again after a report that nothing was changed.
  @Test(arguments: [
    "update n --add 1", "update n --add 1 --json", "put n 1 --json", "clear n --json",
    "update n --exec 'echo 2' --json", "send --to m x --json", "post n --json",
    "defaults write s k 1 --json", "remove channel n --json",
  ])
  func whatIsDoneAndCannotBeToldIsNoFullDisk(_ words: String) throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole put n 1 --type json; wormhole \(words) >/dev/full")
    #expect(outcome.status == .exited(70))
    #expect(outcome.errors.contains("the operation is done, but its result cannot be written"))
  }

  /// All names are changed, as the error states, although the report of the first name is refused.
  @Test(arguments: ["clear --all --json", "remove channel --older-than 0"])
  func aReportThatCannotBeWrittenEndsNoChange(_ words: String) throws {
    let stage = try Stage()
    let fill = "for name in a b c; do wormhole put $name 1; done"
    let full = try stage.run("\(fill); wormhole \(words) >/dev/full")
    #expect(full.status == .exited(70))
    #expect(full.errors.contains("the operation is done, but its result cannot be written"))
    #expect(try stage.run("wormhole list").output == "")
    // The reader has gone before the first report.
    let line = "{ until [ -e gone ]; do :; done; wormhole \(words); echo $? >status; }"
    let piped = try stage.run("\(fill); \(line) | { exec <&-; touch gone; }; cat status")
    #expect(piped.output == "141\n")
    #expect(try stage.run("wormhole list").output == "")
  }

  @Test func aFullOutputIsTold() throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole put speed 1 && wormhole get speed >/dev/full")
    #expect(outcome.status == .exited(73))
    #expect(
      outcome.errors == "wormhole: cannot write to 'standard output': no space left on device; "
        + "free space on the file system, and try again\n")
  }
}
