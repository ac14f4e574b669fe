import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `send`, `receive` and `queue` among several processes.
@Suite(.blocking, .notSanitized("about what a command prints")) struct MailVerbTests {
  /// Starts a receiver, and waits until the receiver has joined.
  private func receiver(_ stage: Stage, _ options: String, _ line: String = "") throws -> Running {
    let exec = line.isEmpty ? "" : "--exec \"$LINE\""
    let running = try stage.start(
      "wormhole receive --as watch --verbose \(options) \(exec)", environment: ["LINE=\(line)"])
    try eventually("it receives") { try running.errors.contains("receiving as 'watch'") }
    return running
  }

  private func done(_ stage: Stage, _ command: String) throws -> String {
    let outcome = try stage.run(command)
    #expect(outcome.status == .exited(0), "\(command): \(outcome.errors)\(outcome.output)")
    #expect(outcome.errors == "", "\(command)")
    return outcome.output
  }

  // MARK: Values

  @Test(arguments: [
    ("nothing", ""), ("a word", "word"), ("lines", "one\n\ntwo\n\n"), ("a line feed", "\n"),
    ("emoji", "👩‍🚀 → 🌍\u{0}!"), ("quotes", "\"'\\$HOME`true`"), ("a dash", "-"),
  ])
  func textIsUnchanged(_ name: String, _ text: String) throws {
    let stage = try Stage()
    try stage.directory.write(text, to: "in")
    try compare(stage)
  }

  @Test func bytesThatAreNoTextAreUnchanged() throws {
    let stage = try Stage()
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    try file.write((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    try compare(stage)
    let kind = "wormhole send --to watch - <in && wormhole receive --as watch --count 1 --json"
    #expect(try done(stage, kind).contains(#""kind":"Data""#))
  }

  @Test func tenMegabytesAreUnchanged() throws {
    let stage = try Stage()
    var random = SeededRandom(seed: 10)
    let chunk = random.bytes(65_536)
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    for _ in 0..<160 { try file.write(chunk) }
    try compare(stage)
  }

  private func compare(_ stage: Stage) throws {
    for receive in ["--raw >out", "--raw --exec 'cat >out'"] {
      let command =
        "wormhole send --to watch - --raw <in && wormhole receive --as watch --count 1 \(receive)"
      #expect(try done(stage, command + " && cmp in out && wormhole queue watch") == "")
    }
  }

  @Test func moreThanAMessageCanBeIsRefused() throws {
    let stage = try Stage()
    for more in ["-", "--lines"] {
      let outcome = try stage.run(
        "wormhole put it small && head -c 70000000 /dev/zero | wormhole send --to watch \(more)")
      #expect(outcome.status == .exited(65))
      #expect(outcome.errors.contains("cannot read 'standard input': "))
      #expect(try done(stage, "wormhole queue watch") == "")
    }
  }

  /// Outcomes that are pending for a member can be listed and removed without joining as the
  /// member.
  @Test func untoldOutcomesAreSeenAndCleared() throws {
    let stage = try Stage()
    // As a member leaves its messages behind.
    let line = """
      for id in a b; do wormhole send --to watch --from phone --id $id it; done
      wormhole send --to phone it
      cd hole/members/watch/inbox
      for file in *; do
        mv $file ../../phone/receipts/$(echo $file | sed s/,n01,/,r01,/).cancelled
      done
      """
    #expect(try done(stage, line) == "")
    let listed = try done(stage, "wormhole queue phone --outcomes")
    #expect(listed == "a\twatch\tString\t1\tcancelled\nb\twatch\tString\t1\tcancelled\n")
    #expect(
      try done(stage, "wormhole queue phone --outcomes --json").contains(#""status":"cancelled""#))
    #expect(try done(stage, "wormhole queue phone --remove-outcomes") == "")
    #expect(try done(stage, "wormhole queue phone --outcomes") == "")
  }

  // MARK: Waiting for the end

  private func guests(_ stage: Stage) throws -> String { try stage.run("ls hole/guests").output }

  @Test(arguments: ["", "--from till"])
  func theSenderIsTold(_ options: String) throws {
    let stage = try Stage()
    let sender = try stage.start("wormhole send --to watch --wait --json --id it go \(options)")
    try eventually("it waits") { try stage.run("wormhole queue watch").output.contains("it\t") }
    #expect(try guests(stage).isEmpty != options.isEmpty)
    #expect(try done(stage, "wormhole receive --as watch --count 1") == "go\n")
    let outcome = try sender.outcome()
    #expect(outcome.status == .exited(0))
    #expect(
      outcome.output.hasPrefix(#"{"count":1,"delivery":"guaranteed","file":null,"#))
    #expect(outcome.output.contains(#""status":"delivered","#))
    #expect(try guests(stage) == "")
  }

  @Test func theSenderIsToldThatItFailed() throws {
    for (options, command, reason) in [
      ("", "queue watch --cancel it", "the message was cancelled"),
      (
        "", "receive --as watch --attempts 1 --count 1 --exec '[ $(cat) = good ]'",
        "the command ended with status 1"
      ),
    ] {
      let stage = try Stage()
      let sender = try stage.start("wormhole send --to watch --wait --id it bad \(options)")
      try eventually("it waits") { try stage.run("wormhole queue watch").output.contains("it\t") }
      let receive = try stage.run("wormhole send --to watch good && wormhole \(command) --quiet")
      #expect(receive.status == .exited(0))
      let outcome = try sender.outcome()
      #expect(outcome.status == .exited(1))
      #expect(outcome.errors == "wormhole: cannot deliver message 'it': \(reason)\n")
    }
  }

  /// Without a receiver.
  @Test func theSenderIsToldThatNobodyHasReceivedIt() throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole send --to watch --wait --ttl 0.01 --id it late")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors == "wormhole: cannot deliver message 'it': the message expired "
        + "before a process received it\n")
    let object = try stage.run("wormhole send --to watch --wait --ttl 0.01 --json late")
    #expect(object.status == .exited(1))
    #expect(object.errors.contains(#""code":"timedOut""#), "\(object.errors)")
    #expect(try done(stage, "wormhole queue watch") == "")
  }

  @Test func aTakenNameIsTold() throws {
    let stage = try Stage()
    let other = try receiver(stage, "")
    for verb in ["receive --as watch", "send --to till --from watch --wait go"] {
      let outcome = try stage.run("wormhole \(verb)")
      #expect(outcome.status == .exited(69))
      #expect(
        stage.normal(outcome.errors)
          == "wormhole: cannot join as 'watch': 'wormhole' (process N, running) has the name\n")
    }
    #expect(try done(stage, "wormhole queue till") == "")
    #expect(try done(stage, "wormhole send --to till --from watch go") == "")
    try other.child.send(.kill)
    #expect(try other.outcome().status == .signalled(9))
    #expect(try done(stage, "wormhole send --to watch go") == "")
    #expect(try done(stage, "wormhole receive --as watch --count 1") == "go\n")
  }

  /// A guest goes with its process, in order or not.
  @Test func aGuestLeavesNothingBehind() throws {
    let stage = try Stage()
    for (signal, number) in [(Processes.Signal.interrupt, Int32(2)), (.terminate, 15), (.kill, 9)] {
      let sender = try stage.start("wormhole send --to watch --wait go")
      try eventually("it waits") {
        try stage.run("wormhole queue watch").output.contains("waiting") && !guests(stage).isEmpty
      }
      try sender.child.send(signal)
      #expect(try sender.outcome().status == .signalled(number))
      if signal == .kill { _ = try done(stage, "wormhole put it any") }
      #expect(try guests(stage) == "")
      #expect(try done(stage, "wormhole receive --as watch --count 1") == "go\n")
    }
  }

  // MARK: Handling

  @Test func aKilledReceiversMessageComesAgain() throws {
    let stage = try Stage()
    let receiver = try receiver(stage, "", "echo begun; kill -KILL $PPID")
    #expect(try done(stage, "wormhole send --to watch one") == "")
    #expect(try receiver.outcome().status == .signalled(9))
    let line = "wormhole receive --as watch --count 1 --json"
    let again = try done(stage, line)
    #expect(again.contains(#""attempt":2,"#))
    #expect(again.contains(#""redelivered":true,"#))
    #expect(try done(stage, "wormhole queue watch") == "")
  }

  /// An interrupted command is not a failure: no attempt counts, however often receivers are
  /// restarted.
  @Test func aSignalIsNoAttempt() throws {
    let stage = try Stage()
    let line = "trap 'kill $!; exit 5' TERM; sleep 600 & echo begun; wait"
    let receiver = try receiver(stage, "", line)
    #expect(try done(stage, "wormhole send --to watch one") == "")
    try eventually("the command runs") { try receiver.output == "begun\n" }
    try receiver.child.send(.terminate)
    #expect(try receiver.outcome().status == .signalled(15))
    #expect(try done(stage, "wormhole queue watch").contains("\tinterrupted\t"))
    let exec = "wormhole receive --as watch --count 1 --exec 'echo $WORMHOLE_MESSAGE_ATTEMPT'"
    #expect(try done(stage, exec) == "1\n")
  }

  /// A message that its command has handled all the same is acknowledged.
  @Test func aSignalWaitsForTheCommand() throws {
    let stage = try Stage()
    let line = "trap 'kill $!; exit 0' TERM; sleep 600 & echo begun; wait"
    let receiver = try receiver(stage, "", line)
    #expect(try done(stage, "wormhole send --to watch one") == "")
    try eventually("the command runs") { try receiver.output == "begun\n" }
    try receiver.child.send(.terminate)
    #expect(try receiver.outcome().status == .signalled(15))
    #expect(try done(stage, "wormhole queue watch") == "")
  }

  @Test func aSignalEndsAReceiverAtOnce() throws {
    for options in ["", "--exec cat"] {
      let stage = try Stage()
      let receiver = try receiver(stage, options)
      try receiver.child.send(.interrupt)
      #expect(try receiver.outcome().status == .signalled(2))
    }
  }

  @Test func aFailedMessageComesAgain() throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole send --to watch one") == "")
    let outcome = try stage.run(
      "wormhole receive --as watch --count 1 --exec "
        + "'echo $WORMHOLE_MESSAGE_ATTEMPT; [ $WORMHOLE_MESSAGE_ATTEMPT = 3 ]'")
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "1\n2\n3\n")
    #expect(outcome.errors.contains("is not handled (attempt 2): the command ended with status 1"))
  }

  /// Otherwise the damaged message would be redelivered for ever.
  @Test func whatIsNoMessageGoesToTheDeadLetters() throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole send --to watch bad && wormhole send --to watch good") == "")
    let file = try stage.run("ls hole/members/watch/inbox | head -1").output.dropLast()
    let inbox = try Descriptor.open(
      path: stage.container + "/members/watch/inbox", [.readOnly, .directory])
    try inbox.open(String(file), [.writeOnly, .truncate]).write("damaged")
    let outcome = try stage.run("wormhole receive --as watch --count 1")
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "good\n")
    #expect(outcome.errors.contains("dead-lettered message"))
    #expect(try done(stage, "wormhole queue watch --dead").contains("the message is damaged: "))
  }

  @Test func aProgramThatCannotRunEndsIt() throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole send --to watch one") == "")
    let outcome = try stage.run(
      "wormhole receive --as watch --exec cat",
      environment: ["WORMHOLE_FAULTS=spawn:before:fail=EAGAIN"])
    #expect(outcome.status == .exited(125), "\(outcome.errors)")
    #expect(try done(stage, "wormhole queue watch").contains("\twaiting\t"))
  }

  // MARK: Output without a reader

  @Test func whatCannotBeWrittenIsNotAcknowledged() throws {
    for (redirection, status) in [(">/dev/full", Int32(73)), (">&-", 70)] {
      let stage = try Stage()
      #expect(try done(stage, "wormhole send --to watch one") == "")
      let outcome = try stage.run("wormhole receive --as watch \(redirection)")
      #expect(outcome.status == .exited(status))
      #expect(try done(stage, "wormhole queue watch").contains("\tinterrupted (1)\t"))
      #expect(
        try done(stage, "wormhole receive --as watch --count 1 --json").contains(#""attempt":2"#))
    }
  }

  @Test func aClosedPipeEndsItQuietlyAndLosesNothing() throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole receive --as watch | true") == "")
    #expect(try done(stage, "wormhole send --to watch one") == "")
    // The reader is gone before the receiver can write: the descriptor is a pipe's without a
    // reader.
    let command = "mkfifo pipe && exec 8<>pipe 9>pipe 8>&- && wormhole receive --as watch >&9 9>&-"
    let outcome = try stage.run("{ \(command); }")
    #expect(outcome.status == .exited(141))
    #expect(outcome.errors == "")
    #expect(try done(stage, "wormhole receive --as watch --count 1") == "one\n")
  }

  /// The pipe's reader is gone.
  ///
  /// The command's output is read by no process any more, but the command runs to its end.
  @Test func aClosedPipeWaitsForTheCommand() throws {
    let stage = try Stage()
    #expect(try done(stage, "mkfifo gate && wormhole send --to watch one") == "")
    let line = "echo begun; read -r x <gate; cat >out"
    let receiver = try stage.start(
      "sh -c 'wormhole receive --as watch --exec \"$LINE\" | (head -n 1; echo >over)'",
      environment: ["LINE=\(line)"])
    try eventually("its reader goes") { try stage.run("ls").output.contains("over\n") }
    #expect(try done(stage, "wormhole queue watch").contains("\tclaimed (1)\t"))
    #expect(try done(stage, "echo go >gate") == "")
    #expect(try receiver.outcome().errors == "")
    #expect(try done(stage, "cat out && wormhole queue watch") == "one\n")
  }

  // MARK: Lines

  @Test func linesAreSentAsTheyCome() throws {
    let stage = try Stage()
    _ = try stage.run("mkfifo pipe")
    // A line is counted once it is stored, which takes long on a busy disk.
    let sender = try stage.start("wormhole send --to watch --lines --no-sync <>pipe")
    let receiver = try receiver(stage, "")
    #expect(try done(stage, "printf 'one\\ntwo\\nth' >pipe") == "")
    try eventually("whole lines come") { try receiver.output == "one\ntwo\n" }
    #expect(try done(stage, "printf 'ree\\n' >pipe") == "")
    try eventually("the rest comes") { try receiver.output == "one\ntwo\nthree\n" }
    try sender.child.send(.interrupt)
    let outcome = try sender.outcome()
    #expect(outcome.status == .signalled(2))
    #expect(outcome.errors == "wormhole: interrupted; 3 lines were sent\n")
  }

  @Test func manyLinesComeInOrder() throws {
    let stage = try Stage()
    let command = """
      seq 20000 >in && wormhole send --to watch --lines --no-sync <in \
      && wormhole receive --as watch --count 20000 >out && cmp in out && wormhole queue watch
      """
    #expect(try done(stage, command) == "")
  }

  // MARK: Trouble

  @Test(arguments: ["send --to watch two", "send --to watch --lines"])
  func aFullDiskChangesNothing(_ words: String) throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole send --to watch one") == "")
    let before = try stage.state()
    let outcome = try stage.run(
      "echo two | wormhole " + words,
      environment: ["WORMHOLE_FAULTS=write~staging:before:fail=ENOSPC"])
    #expect(outcome.status == .exited(73))
    #expect(outcome.errors.contains("free space on the file system, and try again\n"))
    #expect(try stage.state() == before)
  }

  @Test(arguments: [
    "send --to watch two", "receive --as watch", "queue watch", "queue watch --dead",
    "queue watch --cancel it", "send --to watch --wait two",
  ])
  func whatIsNotPermittedIsTold(_ words: String) throws {
    let stage = try Stage()
    #expect(try done(stage, "wormhole send --to watch one") == "")
    let before = try stage.state()
    let outcome = try stage.run(
      "wormhole " + words, environment: ["WORMHOLE_FAULTS=open~hole@2+:before:fail=EACCES"])
    #expect(outcome.status == .exited(77))
    #expect(outcome.output == "")
    #expect(outcome.errors.contains("permission denied"), "\(outcome.errors)")
    #expect(try stage.state() == before)
  }

  @Test func theDoctorLooksAtMessages() throws {
    let stage = try Stage()
    let made = """
      wormhole send --to watch --from till --id good it && wormhole send --to watch --id bad it \
      && wormhole receive --as watch --attempts 1 --count 1 --quiet \
      --exec '[ $WORMHOLE_MESSAGE_ID = good ]' && wormhole doctor
      """
    #expect(try done(stage, made).contains("problem") == false)
    let send = "wormhole send --to watch --id worse it && wormhole send --to watch --id other it"
    #expect(try done(stage, send) == "")
    let before = try stage.state()
    let waiting = try stage.run("wormhole doctor")
    #expect(waiting.output.contains("note      members/watch/inbox: 3 messages wait\n"))
    #expect(waiting.status == .exited(0))
    #expect(try stage.state() == before)

    let receive = "wormhole receive --as watch --attempts 1 --quiet --exec"
    let refused = try stage.run(
      "\(receive) '[ $WORMHOLE_MESSAGE_ID = bad ] && exit 1; kill -KILL $PPID'")
    #expect(refused.status == .exited(137))
    let file = try stage.run("ls hole/members/watch/inbox").output.dropLast()
    let inbox = try Descriptor.open(
      path: stage.container + "/members/watch/inbox", [.readOnly, .directory])
    try inbox.open(String(file), [.writeOnly, .truncate]).write("damaged")
    try inbox.open("mine", [.writeOnly, .create], mode: 0o600).write("mine")
    let found = try stage.run("wormhole doctor")
    #expect(found.status == .exited(1))
    for words in [
      "problem   members/watch/inbox/\(file): message 'other' cannot be read: ",
      "note      members/watch/inbox/mine: a foreign file",
      "note      members/watch/claimed: 1 file is claimed by a member that does not run\n"
        + "          messages that were not handled are redelivered when 'watch' joins\n",
      "problem   members/watch/dead: message 'bad' is a dead letter: the command ended with "
        + "status 1\n          list the dead letters with 'wormhole queue watch --dead'; retry or "
        + "discard this letter with '--retry bad' or '--discard bad'\n",
    ] {
      #expect(found.output.contains(words), "\(words): \(found.output)")
    }
  }

  @Test func theDoctorSweepsGuests() throws {
    let stage = try Stage()
    let sender = try stage.start("wormhole send --to watch --wait go")
    try eventually("it waits") {
      try stage.run("wormhole queue watch").output.contains("waiting") && !guests(stage).isEmpty
    }
    #expect(try !done(stage, "wormhole doctor").contains("problem"))
    try sender.child.send(.kill)
    #expect(try sender.outcome().status == .signalled(9))
    let found = try stage.run("wormhole doctor")
    #expect(found.status == .exited(1))
    #expect(found.output.contains("problem   guests/"))
    #expect(try done(stage, "wormhole doctor --repair").contains("repaired  guests/"))
    #expect(try guests(stage) == "")
  }

  @Test func theDoctorTellsOfReceipts() throws {
    let stage = try Stage()
    let sender = try stage.start("wormhole send --to watch --from till --wait go")
    try eventually("it waits") {
      // A sender that cannot send is reported at once, with the cause.
      let (hasEnded, errors) = (sender.hasEnded, try sender.errors)
      try #require(!hasEnded, "\(errors)")
      return try stage.run("wormhole queue watch").output.contains("waiting")
    }
    try sender.child.send(.kill)
    #expect(try sender.outcome().status == .signalled(9))
    #expect(try done(stage, "wormhole receive --as watch --count 1") == "go\n")
    let found = try done(stage, "wormhole doctor")
    let files = try stage.run("find hole -name '*,*'").output
    #expect(
      found.contains("note      members/till/receipts: 1 receipt waits to be read\n"),
      "\(found)\(files)")
  }
}
