import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole work` and `send --queue`, on queues of several workers.
@Suite(.blocking, .notSanitized("about processes, and what they print")) struct WorkVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  /// Starts a worker, and waits until it works.
  private func worker(_ options: String) throws -> Running {
    let running = try stage.start("wormhole work jobs --verbose \(options)")
    try eventually("it works") { try running.errors.contains("working on queue") }
    return running
  }

  @Test func programsHandleMessagesAtTheSameTime() throws {
    // Each of the two programs waits for the other program.
    let line = "read n; touch $n; until [ -e 1 ] && [ -e 2 ]; do sleep 0.01; done; echo $n >>done"
    #expect(try stage.done("printf '1\\n2\\n' | wormhole send --queue jobs --lines") == "")
    #expect(try stage.done("wormhole queue jobs | cut -f2") == "waiting\nwaiting\n")
    let work = "wormhole work jobs --exec '\(line)' --parallel 2 --count 2 --timeout 60"
    #expect(try stage.done(work) == "")
    #expect(try stage.done("sort done") == "1\n2\n")
    #expect(try stage.done("wormhole queue jobs") == "")
    #expect(try stage.done("wormhole remove queue jobs; wormhole list") == "")
  }

  @Test func theProgramHasTheFieldsOfTheMessage() throws {
    let send = "wormhole send --queue jobs --id first --from till --header trace=7 --kind Job 'a b'"
    #expect(try stage.done(send) == "")
    let fields = "$WORMHOLE_MESSAGE_ID $WORMHOLE_MESSAGE_FROM $WORMHOLE_MESSAGE_KIND"
    let line = "cat; echo \(fields) $WORMHOLE_MESSAGE_ATTEMPT $WORMHOLE_HEADER_TRACE"
    let output = try stage.done("wormhole work jobs --count 1 --exec '\(line)'")
    #expect(output == "a b\nfirst till Job 1 7\n")
  }

  @Test func messagesOfAKeyAreNotHandledAtTheSameTime() throws {
    for number in 1...3 {
      #expect(try stage.done("wormhole send --queue jobs --ordering-key seat-9 \(number)") == "")
    }
    #expect(
      try stage.done("wormhole queue jobs --json | grep -c '\"orderingKey\":\"seat-9\"'") == "3\n")
    let line = "mkdir busy && sleep 0.02 && rmdir busy && cat >>done"
    #expect(try stage.done("wormhole work jobs --exec '\(line)' --parallel 3 --count 3") == "")
    #expect(try stage.done("cat done") == "1\n2\n3\n")
    let toMember = try stage.run("wormhole send --to jobs --ordering-key seat-9 1")
    #expect(toMember.status == .exited(64))
    #expect(toMember.errors.contains("--ordering-key requires --queue"))
  }

  @Test func programsFindTheFileOfAMessage() throws {
    #expect(
      try stage.done("echo pages >report; wormhole send --queue jobs --file report --move") == "")
    let line = "echo $WORMHOLE_MESSAGE_FILE_NAME; cat \"$WORMHOLE_MESSAGE_FILE\""
    let worked = try stage.run("wormhole work jobs --exec '\(line)' --count 1 --timeout 60")
    #expect(worked.output == "report\npages\n")
    #expect(try stage.done("ls report 2>/dev/null || wormhole queue jobs --dead") == "")
  }

  @Test func aDelayedMessageWaitsAside() throws {
    #expect(
      try stage.done("wormhole send --queue jobs --delay 1h late; wormhole send --queue jobs now")
        == "")
    let listed = try stage.done("wormhole queue jobs | cut -f2").split(separator: "\n")
    #expect(listed.first == "waiting" && listed.last?.hasPrefix("delayed until 20") == true)
    #expect(try stage.done("wormhole queue jobs --json | grep -c '\"notBefore\":\"20'") == "1\n")
    #expect(try stage.done("wormhole work jobs --exec cat --count 1 --timeout 60") == "now\n")
    #expect(try stage.done("wormhole queue jobs | cut -f2").hasPrefix("delayed until 20"))
    // However late the worker starts, the delay is over when it has the message.
    let begin = Instant.now
    #expect(try stage.done("wormhole send --queue films --delay 1 late") == "")
    #expect(try stage.done("wormhole work films --exec cat --count 1 --timeout 60") == "late\n")
    #expect(Instant.now - begin >= .seconds(1))
    let immediate = try stage.run("wormhole send --to watch --immediate --delay 1 x")
    #expect(immediate.status == .exited(64))
    let tooLong = try stage.run("wormhole send --to watch --delay 3000000 x")
    #expect(tooLong.status != .exited(0) && tooLong.errors.contains("at most 30d"))
  }

  @Test func aMessageThatFailsGoesToTheDeadLettersOfTheQueue() throws {
    #expect(
      try stage.done("wormhole send --queue jobs --id a one; wormhole send --to jobs two") == "")
    let failing = try worker("--exec 'exit 3' --attempts 1")
    try eventually("the dead letter") {
      try stage.done("wormhole queue jobs --queue --dead | cut -f1,5").contains("a\t1\n")
    }
    #expect(try failing.errors.contains("not handled (attempt 1): the command ended with status 3"))
    try failing.child.send(.terminate)
    #expect(try failing.outcome().status == .signalled(15))
    #expect(try stage.done("wormhole queue jobs --queue --retry a") == "")
    #expect(try stage.done("wormhole work jobs --count 1 --exec cat") == "one\n")
    // The message to the member of this name is not the queue's.
    #expect(try stage.done("wormhole queue jobs --member | cut -f2") == "waiting\n")
  }

  @Test func aMissingProgramFailsNoMessage() throws {
    #expect(try stage.done("wormhole send --queue jobs one") == "")
    let outcome = try stage.run("wormhole work jobs --exec no-such-program --attempts 1")
    #expect(outcome.status == .exited(127))
    #expect(outcome.errors.contains("the message waits for another worker"))
    #expect(try stage.done("wormhole queue jobs | cut -f2") == "waiting\n")
    #expect(
      try stage.done("wormhole work jobs --count 1 --exec 'echo $WORMHOLE_MESSAGE_ATTEMPT'")
        == "1\n")
  }

  @Test func fewerMessagesThanAskedForAreAFailure() throws {
    #expect(try stage.done("wormhole send --queue jobs one") == "")
    func work(_ seconds: Int) throws -> ProcessOutcome {
      try stage.run("wormhole work jobs --count 2 --timeout \(seconds) --exec cat")
    }
    var some = try work(2)
    // On a busy machine, the start may take longer.
    if some.output == "" { some = try work(20) }
    #expect(some.output == "one\n" && some.status != .exited(0))
    #expect(some.errors.contains("only 1 were handled before the deadline"), "\(some.errors)")
    let none = try stage.run("wormhole work jobs --timeout 0.1 --exec cat")
    #expect(none.errors.contains("no message was handled before the deadline"))
  }

  /// The messages of programs that run at the deadline are in time, as with `receive`.
  @Test func aProgramThatRunsAtTheDeadlineIsInTime() throws {
    let fill = "wormhole send --queue jobs one; wormhole send --queue films one"
    #expect(try stage.done(fill) == "")
    let counted = try outcomePastTheDeadline("jobs", "--count 1", "cat")
    #expect(counted.status == .exited(0), "\(counted.errors)")
    #expect(counted.output == "one\n")
    let outcome = try outcomePastTheDeadline("films", "", "no-such-program")
    #expect(outcome.status == .exited(127))
    #expect(outcome.errors.contains("the message waits for another worker"), "\(outcome.errors)")
  }

  /// The outcome of a worker whose program began before the deadline, and runs the line after it.
  private func outcomePastTheDeadline(
    _ queue: String, _ options: String, _ line: String
  ) throws -> ProcessOutcome {
    // On a busy machine, the start may take longer than a short time limit.
    for limit in [1, 4, 16] {
      let exec = "touch \(queue); sleep \(limit).5; \(line)"
      let work = "wormhole work \(queue) \(options) --timeout \(limit) --exec '\(exec)'"
      let outcome = try stage.run(work)
      if try stage.run("[ -e \(queue) ]").status == .exited(0) { return outcome }
    }
    throw TooLate(description: "no program began before the deadline")
  }

  /// Programs that handle their message after the signal have handled it; the others have not, and
  /// no attempt counts.
  @Test func aSignalEndsAWorkerInOrder() throws {
    #expect(
      try stage.done("printf 'good\\nbad\\nlater\\n' | wormhole send --queue jobs --lines") == "")
    let line = """
      read word; trap "" INT; trap "[ \\$word = good ]; exit \\$?" TERM; touch $word; \
      while [ -e $word ]; do sleep 0.02; done
      """
    let running = try worker("--parallel 2 --exec '\(line)'")
    try eventually("both run") { try stage.run("[ -e good ] && [ -e bad ]").status == .exited(0) }
    try running.child.send(.terminate)
    #expect(try running.outcome().status == .signalled(15))
    #expect(try stage.done("wormhole queue jobs | cut -f2") == "interrupted\nwaiting\n")
    let rest = "wormhole work jobs --count 2 --exec 'read w; echo $w $WORMHOLE_MESSAGE_ATTEMPT'"
    #expect(try stage.done(rest) == "bad 1\nlater 1\n")
  }

  /// Both verbs kill a program that does not end within its time.
  @Test(arguments: ["work jobs", "receive --as jobs"])
  func aProgramThatIgnoresTheSignalIsKilled(verb: String) throws {
    let to = verb == "work jobs" ? "--queue" : "--to"
    #expect(try stage.done("wormhole send \(to) jobs one") == "")
    // The program outlives a command that does not kill it, but not this test's directory.
    let line = "trap \"\" TERM; touch begun; while [ -e begun ]; do sleep 1; done"
    let running = try stage.start("wormhole \(verb) --grace 0.2 --exec '\(line)'")
    try eventually("it runs") { try stage.run("[ -e begun ]").status == .exited(0) }
    var status: ChildStatus?
    let time = try Bystander.time {
      try running.child.send(.terminate)
      status = try? running.outcome(within: patience).status
    }
    #expect(status == .signalled(15))
    // Without the option the program has ten seconds.
    #expect(time < .seconds(8))
    let again = "wormhole \(verb) --count 1 --exec 'echo $WORMHOLE_MESSAGE_ATTEMPT'"
    #expect(try stage.done(again) == "1\n")
  }

  @Test func theWorkOfAKilledWorkerIsAnothers() throws {
    #expect(try stage.done("wormhole send --queue jobs one") == "")
    // The program outlives its worker, but not this test's directory.
    let line = "touch begun; while [ -e begun ] && ! [ -e over ]; do sleep 0.05; done"
    let killed = try worker("--exec '\(line)'")
    try eventually("it runs") { try stage.run("[ -e begun ]").status == .exited(0) }
    let next = try worker("--count 1 --exec 'echo $WORMHOLE_MESSAGE_ATTEMPT'")
    try killed.child.send(.kill)
    #expect(try killed.outcome().status == .signalled(9))
    #expect(try next.outcome().status == .exited(0))
    #expect(try next.output == "2\n")
    _ = try stage.done("touch over")
  }

  /// The deadline passes while the program runs, unless the claim is renewed.
  @Test func theDeadlineIsRenewedOnRequest() throws {
    #expect(try stage.done("wormhole send --queue jobs one") == "")
    let slow = "while [ -e begun ] && ! [ -e over ]; do sleep 0.02; done"
    let renewing = try worker("--deadline 4 --renew --count 1 --exec 'touch begun; \(slow)'")
    try eventually("it runs") { try stage.run("[ -e begun ]").status == .exited(0) }
    let other = "wormhole work jobs --timeout 9 --exec 'echo $WORMHOLE_MESSAGE_ATTEMPT'"
    #expect(try stage.run(other).status == .exited(1))
    _ = try stage.done("touch over")
    #expect(try renewing.outcome().status == .exited(0))
    // Without renewal another worker has the message.
    _ = try stage.done("rm over begun; wormhole send --queue jobs two")
    let late = try worker("--deadline 0.6 --exec 'touch begun; \(slow)'")
    try eventually("it runs") { try stage.run("[ -e begun ]").status == .exited(0) }
    #expect(
      try stage.done("\(other.replacing("timeout 9", with: "timeout 60")) --count 1") == "2\n")
    _ = try stage.done("touch over")
    try eventually("the note") { try late.errors.contains("is another worker's") }
    try late.child.send(.terminate)
    #expect(try late.outcome().status == .signalled(15))
    #expect(try stage.done("wormhole queue jobs") == "")
  }

  @Test(arguments: ["", "--from till "]) func aSenderWaitsForTheOutcome(from: String) throws {
    let sender = try stage.start("wormhole send --queue jobs \(from)--wait --timeout 60 one")
    #expect(try stage.done("wormhole work jobs --count 1 --exec cat") == "one\n")
    #expect(try sender.outcome().status == .exited(0))
    let late = try stage.run("wormhole send --queue jobs \(from)--wait --timeout 0.1 two")
    #expect(late.status == .exited(1))
    #expect(late.errors.contains("the message was not handled before the deadline"))
  }

  @Test func mistakesAreNamed() throws {
    for (command, words) in [
      ("work jobs", "--exec is missing"),
      ("work jobs --exec cat --parallel 1001", "'1001' is not a whole number from 1 to 1000"),
      ("work jobs --exec cat --deadline 0", "--deadline D: '0' is not a duration above 0"),
      ("send one", "--to is missing, or --queue for a queue of workers"),
      ("send --queue jobs --to watch one", "--queue and --to exclude each other"),
      ("send --queue jobs --context --from a f", "--queue and --context exclude each other"),
      ("receive --as watch --grace 1", "--grace requires --exec"),
    ] {
      let outcome = try stage.run("wormhole \(command)")
      #expect(outcome.status == .exited(64), "\(command)")
      #expect(outcome.errors.contains(words), "\(command): \(outcome.errors)")
    }
    let empty = try stage.run("wormhole work jobs --exec cat --timeout 0.1")
    #expect(empty.status == .exited(1))
    #expect(empty.errors.contains("no message was handled before the deadline"))
  }
}
