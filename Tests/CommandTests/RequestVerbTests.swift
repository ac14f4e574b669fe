import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `request`, `reply` and `wake` among several processes.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct RequestVerbTests {
  /// Starts a replier, and waits until it has joined.
  private func replier(_ stage: Stage, _ line: String, _ options: String = "") throws -> Running {
    let running = try stage.start(
      "wormhole reply --as watch --verbose \(options) --exec \"$LINE\"",
      environment: ["LINE=\(line)"])
    try eventually("it replies") { try running.errors.contains("replying as 'watch'") }
    return running
  }

  private func files(_ stage: Stage, _ path: String) throws -> String {
    try stage.run("ls hole/\(path)").output
  }

  // MARK: Answers

  /// The command does not wait for another request: the requester has been refused.
  @Test func aMissingProgramRefusesAndEndsIt() throws {
    let stage = try Stage()
    let reply = try stage.start("wormhole reply --as watch --verbose --exec no-such-program")
    try eventually("it replies") { try reply.errors.contains("replying as 'watch'") }
    let request = try stage.run("wormhole request --to watch x")
    #expect(request.status == .exited(1), "\(request.errors)")
    let outcome = try reply.outcome()
    #expect(outcome.status == .exited(127))
    #expect(
      outcome.errors.hasSuffix(
        "a program of 'no-such-program' was not found; the request was refused\n"))
  }

  @Test func bytesComeBackAsTheyAre() throws {
    let stage = try Stage()
    var random = SeededRandom(seed: 11)
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    try file.write(random.bytes(3_000_000))
    let replier = try replier(stage, "cat", "--raw --type data")
    let ask = "wormhole request --to watch --raw --timeout 60 - <in >out && cmp in out"
    #expect(try stage.done(ask) == "")
    #expect(try stage.done("wormhole request --to watch --raw ''") == "")
    try replier.child.send(.interrupt)
    #expect(try replier.outcome().status == .signalled(2))
  }

  @Test func eachIsAnsweredAndCounted() throws {
    let stage = try Stage()
    let replier = try replier(stage, "echo $(($(cat) + 1))", "--type json --count 20 --json")
    for number in 0..<20 {
      let ask = "wormhole request --to watch --type json \(number) --timeout 60"
      #expect(try stage.done(ask) == "\(number + 1)\n")
    }
    let outcome = try replier.outcome()
    #expect(outcome.status == .exited(0))
    let lines = (1...20).map {
      #"{"from":null,"headers":null,"kind":"PropertyListValue","reason":null,"replied":true,"#
        + #""to":"watch","value":\#($0)}"#
    }
    #expect(outcome.output.split(separator: "\n").map(String.init) == lines)
    #expect(try files(stage, "guests") == "")
  }

  /// Of a very long line, the reason is the end.
  @Test func aRefusalHasThousandsOfLettersOfAnError() throws {
    let stage = try Stage()
    let line = "printf 'one\\n%5000s' end >&2; exit 3"
    let replier = try replier(stage, line)
    let outcome = try stage.run("wormhole request --to watch x")
    #expect(outcome.status == .exited(1))
    let blanks = outcome.errors.count { $0 == " " }
    #expect((4000...4200).contains(blanks), "\(blanks)")
    #expect(outcome.errors.hasSuffix(" end\n"))
    try replier.child.send(.interrupt)
    _ = try replier.outcome()
  }

  @Test func aRefusalSaysTheLastLineOfItsErrors() throws {
    let stage = try Stage()
    let replier = try replier(stage, "echo one >&2; printf 'two words' >&2; exit 3")
    let outcome = try stage.run("wormhole request --to watch it")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors
        == "wormhole: cannot get a reply from 'watch': the command ended with status 3: two "
        + "words\n")
    // The errors are also written to the replier's own standard error.
    #expect(try replier.errors.contains("one\ntwo words"))
  }

  @Test func theLastLineOfLongErrorsIsTold() throws {
    let stage = try Stage()
    let replier = try replier(
      stage, "head -c 9000 /dev/zero | tr '\\0' x >&2; printf '\\nlast words' >&2; exit 3")
    let outcome = try stage.run("wormhole request --to watch it")
    #expect(outcome.errors.hasSuffix("ended with status 3: last words\n"), "\(outcome.errors)")
    try replier.child.send(.kill)
    _ = try replier.outcome()
  }

  @Test func anotherKindIsRefused() throws {
    let stage = try Stage()
    let replier = try replier(stage, "cat", "--kind Order")
    #expect(try stage.done("wormhole request --to watch --kind Order it") == "it\n")
    let outcome = try stage.run("wormhole request --to watch it")
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("has no handler for requests of kind 'String'"))
    try replier.child.send(.kill)
    _ = try replier.outcome()
  }

  @Test func aProgramThatCannotRunEndsIt() throws {
    let stage = try Stage()
    let replier = try stage.start(
      "wormhole reply --as watch --verbose --exec cat",
      environment: ["WORMHOLE_FAULTS=spawn:before:fail=EAGAIN"])
    try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
    let outcome = try stage.run("wormhole request --to watch it")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors == "wormhole: cannot get a reply from 'watch': the command of the receiver "
        + "could not be started\n")
    #expect(try replier.outcome().status == .exited(125))
  }

  // MARK: Ends

  /// The requester is notified at once, whatever ends the replier: also if leftovers of the command
  /// keep its pipes open.
  @Test func whoAsksIsToldThatTheOtherHasEnded() throws {
    let command = "echo $$ >begun; exec sleep 600"
    let leaving = "trap 'exit 0' TERM; sleep 600 & echo $! >begun; wait"
    for (signal, line) in [
      (Processes.Signal.kill, command), (.terminate, command), (.terminate, leaving),
    ] {
      let stage = try Stage()
      let replier = try replier(stage, line)
      let asker = try stage.start("wormhole request --to watch --timeout 600 it")
      var left: Int32?
      try eventually("the command runs") {
        left = Int32(try stage.run("cat begun").output.split(separator: "\n").first ?? "")
        return left != nil
      }
      try replier.child.send(signal)
      let outcome = try asker.outcome()
      #expect(outcome.status == .exited(69))
      #expect(
        outcome.errors
          == "wormhole: cannot get a reply from 'watch': the peer ended or left before its reply\n")
      #expect(try files(stage, "guests") == "")
      if signal == .terminate { #expect(try replier.outcome().status == .signalled(15)) }
      try? Processes.send(.kill, to: left!)
    }
  }

  /// The reader of the replier's output has gone while a command was running.
  @Test func aClosedPipeWaitsForTheReply() throws {
    let stage = try Stage()
    #expect(try stage.done("mkfifo pipe") == "")
    let reader = try stage.start("sleep 600 <pipe")
    let line = "touch begun; until [ -e go ]; do sleep 0.02; done; cat"
    let replier = try replier(stage, line, ">pipe")
    let asker = try stage.start("wormhole request --to watch --timeout 600 it")
    try eventually("the command runs") { try files(stage, "../begun") != "" }
    // The thread that watches the pipe ends when it has reported that the reader has gone.
    let threads = "cat /proc/\(replier.child.process)/task/*/comm"
    try eventually("the pipe is watched") { try stage.run(threads).output.contains("reader\n") }
    try reader.child.send(.kill)
    try eventually("its end is seen") { try !stage.run(threads).output.contains("reader\n") }
    try stage.done("touch go")
    let outcome = try asker.outcome()
    #expect(outcome.output == "it\n", "\(outcome.errors)")
    #expect(try replier.outcome().status == .exited(141))
  }

  @Test func whoeverIsStoppedIsGivenUp() throws {
    let stage = try Stage()
    let replier = try replier(stage, "cat")
    try replier.child.send(.stop)
    try replier.waitUntilStopped()
    let outcome = try stage.run("wormhole request --to watch --timeout 0.2 it")
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("no reply arrived within 0.2 seconds"))
    try replier.child.send(.go)
    #expect(try stage.done("wormhole request --to watch again --timeout 60") == "again\n")
    #expect(try files(stage, "members/watch/live/*") == "")
  }

  @Test func anInterruptedAskerLeavesNothingBehind() throws {
    let stage = try Stage()
    let replier = try replier(stage, "touch begun; until [ -e go ]; do sleep 0.02; done; cat")
    let asker = try stage.start("wormhole request --to watch --timeout 600 it")
    try eventually("the command runs") { try files(stage, "../begun") != "" }
    #expect(try files(stage, "guests") != "")
    try asker.child.send(.interrupt)
    #expect(try asker.outcome().status == .signalled(2))
    #expect(try files(stage, "guests") == "")
    _ = try stage.done("touch go")
    #expect(try stage.done("wormhole request --to watch again --timeout 60") == "again\n")
    #expect(!replier.hasEnded)
  }

  // MARK: Waking

  @Test func manyWakeOne() throws {
    let stage = try Stage()
    let line = "echo $$ >>started; exec wormhole reply --as watch --timeout 60 --exec cat --count 9"
    try stage.directory.write(line, to: "script")
    let register = "wormhole wake watch --register --directory \"$STAGE\" -- sh script"
    #expect(try stage.done(register) == "")
    let askers = try (0..<9).map { number in
      try stage.start("wormhole request --to watch --wake --timeout 60 \(number)")
    }
    for (number, asker) in askers.enumerated() {
      let outcome = try asker.outcome(within: .seconds(90))
      #expect(outcome.output == "\(number)\n", "\(outcome.errors)")
    }
    #expect(try stage.directory.read("started").split(separator: "\n").count == 1)
  }

  @Test func aVariableOfAStartMayHaveEqualSigns() throws {
    let stage = try Stage()
    let register = "wormhole wake clock --register --env K=a=b --env L= -- true"
    #expect(try stage.done(register) == "")
    let shown = try stage.done("wormhole wake clock --show --json")
    #expect(shown.contains(#""environment":{"K":"a=b","L":""}"#), "\(shown)")
  }

  /// As with execvp(3), further folders without the program do not make the program missing.
  @Test func aProgramThatIsNotExecutableIsNotMissing() throws {
    let stage = try Stage()
    try stage.done("mkdir plain empty other && touch plain/usherd && cp /bin/true other/usherd")
    func register(_ folders: String...) throws -> ProcessOutcome {
      let path = folders.map { "$PWD/\($0):" }.joined() + "$PATH"
      return try stage.run("PATH=\"\(path)\" wormhole wake usher --register -- usherd")
    }
    for outcome in [try register("plain", "empty"), try register("empty", "plain")] {
      #expect(
        outcome.errors.contains("program 'usherd' is not executable"), "\(outcome.errors)")
      #expect(outcome.status != .exited(0))
    }
    let missing = try register("empty")
    #expect(missing.errors.contains("program 'usherd' was not found"), "\(missing.errors)")
    let found = try register("plain", "other")
    #expect(found.status == .exited(0), "\(found.errors)")
    #expect(try stage.done("wormhole wake usher --show").contains("other/usherd"))
  }

  @Test func aStartIsForgottenOnlyWhereAContainerIs() throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole wake watch --forget")
    #expect(outcome.status != .exited(0))
    #expect(
      stage.normal(outcome.errors).hasPrefix("wormhole: cannot open container 'DIR': "),
      "\(outcome.errors)")
    #expect(try stage.run("ls").output == "")
  }

  @Test func timeIsUpIfItDoesNotJoin() throws {
    let stage = try Stage()
    #expect(try stage.done("wormhole wake watch --register -- sleep 5") == "")
    let outcome = try stage.run("wormhole wake watch --timeout 0.3")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors.contains("/sleep' (process ")
        && outcome.errors.contains(") was started, and no process has joined within 0.3 seconds"))
  }

  @Test func whatOthersMayHaveRegisteredIsRefused() throws {
    let stage = try Stage()
    #expect(try stage.done("wormhole wake watch --register -- true") == "")
    let outcome = try stage.run("chmod 666 hole/members/watch/start.plist; wormhole wake watch")
    #expect(outcome.status == .exited(77))
    #expect(
      outcome.errors == "wormhole: cannot wake 'watch': unauthorized users may write to its "
        + "start.plist (mode 666); check the content of the file, and register the launch "
        + "command again\n")
    let doctor = try stage.run("wormhole doctor | grep '^problem'")
    #expect(
      doctor.output
        == "problem   members/watch/start.plist: unauthorized users may write to its start.plist "
        + "(mode 666)\n")
  }

  // MARK: The doctor

  @Test func theDoctorSeesWhatCannotBeStarted() throws {
    let stage = try Stage()
    let register = "cp /bin/true program && wormhole wake watch --register -- ./program"
    #expect(try stage.done(register + " && wormhole doctor | grep '^problem' || true") == "")
    let doctor = try stage.run("rm program; wormhole doctor | grep '^problem'")
    #expect(
      doctor.output == "problem   members/watch/start.plist: cannot execute program "
        + "'\(stage.directory.path)/program' of the launch command: no such file or directory\n")
  }

  @Test func theDoctorTellsOfWhatLiesThereForNow() throws {
    let stage = try Stage()
    let replier = try replier(stage, "cat")
    try replier.child.send(.stop)
    try replier.waitUntilStopped()
    let folder = "hole/members/watch/live/*"
    let touch = "touch $(echo \(folder))/mine"
    #expect(try stage.done(touch) == "")
    let sender = try stage.start("wormhole send --to watch --immediate it --timeout 60")
    try eventually("it lies there") {
      try files(stage, "members/watch/live/*").contains(",c,")
    }
    let found = try stage.run("wormhole doctor | grep -A1 live").output
    #expect(found.contains("1 file of immediate messages to be read"))
    #expect(found.contains("/mine: a foreign file"))
    // An orderly end of the sender would withdraw its message.
    try sender.child.send(.kill)
    _ = try sender.outcome()
    try replier.child.send(.kill)
    _ = try replier.outcome()
    let left = try stage.run("touch hole/members/watch/live/other; wormhole doctor | grep live")
    #expect(left.output.contains("an ended process has left"))
    #expect(left.output.contains("live/other: a foreign file"))
    let asker = try stage.start("wormhole send --to nobody --wait it")
    try eventually("a guest is there") { try files(stage, "guests") != "" }
    try eventually("the guest's folder is looked at") {
      let command = "(cd hole/guests/*/live && touch mine) && wormhole doctor"
      return try stage.run(command).output.contains("live/mine: a foreign file")
    }
    try asker.child.send(.kill)
    _ = try asker.outcome()
    #expect(
      try stage.run("wormhole doctor").output.contains("left by a guest whose process has ended"))
  }
}
