import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeStress

/// P3, P4, P5 and P7: real processes keep the promises in every order of their system calls; and
/// where a mechanism is missing, an order shows it, the same each time.
@Suite(.blocking, .notSanitized("about real processes, one thread at a time"))
struct ScheduleTests {
  private func schedules(
    _ arguments: [String], schedule: String? = nil, environment others: [String] = []
  ) throws -> ProcessOutcome {
    let environment = others + (schedule.map { ["WORMHOLE_SCHEDULE=\($0)"] } ?? [])
    return try TestSupport.run(
      Programs.built("wormhole-stress"), ["schedules"] + arguments, environment: environment)
  }

  private static let isLong = TestRun.isLong
  /// How often a line runs that breaks a promise without a mechanism.
  private static let repetitions = isLong ? 3 : 2

  /// A step of `.ci/run` runs every order within the limits of each scenario, and more drawn ones.
  @Test(arguments: Scenario.allCases)
  func everyOrderKeepsThePromises(_ scenario: Scenario) throws {
    let extent =
      Self.isLong
      ? [
        "--preemptions", scenario.hasMachines ? "0" : scenario == .keys ? "1" : "2",
        "--drawn", "10000", "--budget", "600",
      ]
      : [
        "--preemptions", scenario.preemptions > 1 ? "1" : "0",
        "--drawn", "8", "--budget", "100", "--jobs", "2",
      ]
    let result = try schedules(
      ["--scenario", scenario.rawValue, "--seed", "\(TestRun.seed % 1_000_000)", "--complete"]
        + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    let lines = result.output.split(separator: "\n").filter { $0.starts(with: scenario.rawValue) }
    #expect(lines.first?.contains("all there are") == true, "\(result.output)")
    #expect(lines.count == 2, "\(result.output)")
  }

  /// The orders that are left out differ from others only in the order of independent calls.
  @Test(arguments: isLong ? [1, 2] : [1], [Scenario.updaters, .takeover])
  func whatIsLeftOutIsEqualToWhatIsRun(_ limit: Int, _ scenario: Scenario) throws {
    func different(_ options: [String]) throws -> (run: Int, different: String) {
      let output = try schedules(
        [
          "--scenario", scenario.rawValue, "--preemptions", "\(limit)", "--drawn", "0",
          "--traces", "--complete", "--jobs", "2",
        ] + options
      ).output
      let words = output.split(separator: " ")
      let place = try #require(words.firstIndex(of: "different"), "\(output)")
      return (try #require(Int(words[1]), "\(output)"), "\(words[place - 1]) \(words[place + 1])")
    }
    let (some, all) = (try different([]), try different(["--whole"]))
    #expect(some.different == all.different && some.run * 3 < all.run * 2, "\(some), \(all)")
  }

  /// Whether a lock gets the memory of a freed lock differs from run to run.
  @Test func theOrdersDoNotDependOnFreedMemory() throws {
    let counts = try ["tcache_count=1", "tcache_count=3", "perturb=5"].map { setting in
      let result = try schedules(
        ["--scenario", "cancel", "--preemptions", "1", "--drawn", "0", "--traces", "--complete"],
        environment: ["GLIBC_TUNABLES=glibc.malloc.\(setting)"])
      #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
      return result.output.split(separator: " ").prefix { $0 != "in" }.joined(separator: " ")
    }
    #expect(Set(counts).count == 1 && counts[0].contains("all there are"), "\(counts)")
  }

  @Test func aScenarioThatIsNotFinishedIsNamed() throws {
    let arguments = ["--scenario", "updaters", "--budget", "0", "--drawn", "0"]
    let result = try schedules(arguments + ["--complete"])
    #expect(result.status == .exited(1), "\(result.output)")
    #expect(result.errors.contains("cannot run every order of 'updaters' within 0 s: "))
    #expect(try schedules(arguments).status == .exited(0))
  }

  private static let lines = [
    "updaters 1 1:go1", "takeover 1 2:stop0=3000", "power 1 6:go1 13:stop0=3000", "power 2 5:kill0",
    "mail 1 33:kill0", "mail 7 20:lose0 33:stop0=3000", "cancel 3 20:stop1=3000", "delivered 1",
    "hung 1", "appear 1", "guest 1", "file 1", "pieces 1", "evict 1", "follow 1", "wake 1",
  ]
  /// Lines of scenarios of which a usual run repeats a line in another test.
  private static let otherLines = [
    "carry 1 277:kill1", "homes 1", "changes 1 660:kill2", "talk 1", "state 1", "rivals 1",
    "lent 1", "losses 1", "keys 1 60:kill1",
  ]

  /// Everything that could differ comes from the line: the same steps, clocks and results.
  @Test(arguments: isLong ? lines + otherLines : lines)
  func aLineGivesTheSameStepsEachTime(_ line: String) throws {
    let first = try schedules([], schedule: line).output
    #expect(first.contains("the steps: "), "\(first)")
    for _ in 0..<(Self.isLong ? 99 : 1) {
      let again = try schedules([], schedule: line).output
      #expect(again == first)
    }
  }

  /// A sync is left out, the fence is, and more: each is found, shrunk to few moves, and found
  /// again each time, in the same table of steps.
  @Test(arguments: [
    ("trust-open-file", "updaters", 1, "undone: "), ("no-file-sync", "power", 0, "undone: "),
    ("no-directory-sync", "power", 0, "undone: "), ("no-removal", "takeover", 2, "lost: "),
    ("steal-without-generation", "takeover", 2, "undone: "),
    ("open-staging-late", "takeover", 2, "undone: "), ("repeat-partly", "several", 1, "double: "),
    ("remove-without-fence", "names", 1, "lost: "), ("heal-by-rename", "repair", 1, "lost: "),
    ("no-progress", "batch", 1, "twice: "), ("remove-listed", "members", 1, "lost: "),
    ("skip-interrupted", "late", 1, "lost: "), ("accept-late", "queue", 1, "twice: "),
    ("trust-old-look", "present", 1, "lost: "), ("move-unwaited", "moved", 0, "unsaved: "),
    ("keep-lost", "ask", 1, "blocked: "), ("wait-again", "hung", 0, "blocked: "),
    ("drop-late-resume", "hung", 0, "paused: "), ("tell-only-asked", "appear", 0, "unnoticed: "),
    ("forget-buried", "appear", 1, "unnoticed: "), ("sweep-elsewhere", "guest", 0, "error: "),
    ("drop-carried-receipts", "guest", 0, "error: "), ("keep-orphans", "file", 1, "error: "),
    ("keep-late", "updaters", 0, "undone: "), ("save-unsynced", "saves", 0, "undone: "),
    ("save-unlooked", "saves", 1, "undone: "), ("claim-any-key", "keys", 0, "unlooked: "),
    ("no-file-sync", "delivered", 0, "undone: "),
    ("no-directory-sync", "delivered", 0, "undone: "),
  ])
  func aMechanismThatIsTakenOutIsFoundAndFoundAgain(
    _ mutant: String, _ scenario: String, _ moves: Int, _ violation: String
  ) throws {
    let disabled = ["--mutant", mutant]
    let extent = scenario == "keys" ? ["--preemptions", "1"] : []
    let found = try schedules(
      ["--scenario", scenario, "--drawn", "0", "--budget", "300", "--jobs", "2"] + extent
        + disabled)
    #expect(found.status == .exited(1), "\(found.output)\(found.errors)")
    #expect(found.output.contains("\n  \(violation)"), "\(found.output)")
    let parts = found.errors.split(separator: "'")
    let line = try #require(parts.count > 1 ? String(parts[1]) : nil, "\(found.errors)")
    let schedule = try #require(Schedule(line))
    #expect(schedule.entries.count <= moves, "\(line)")
    let again = try (0..<Self.repetitions).map { _ in try schedules(disabled, schedule: line) }
    #expect(again.allSatisfy { $0.status == .exited(1) && $0.output == again[0].output })
    #expect(again[0].output.contains("\n\(violation)"), "\(again[0].output)")
    // The same table as the search has printed: step, process, thread, call and file.
    let table = again[0].output.split(separator: "\n").dropLast()
    #expect(table.count > 10 && found.output.contains(table.joined(separator: "\n")))
    if ["updaters", "power", "takeover"].contains(scenario) {
      let commit = "\tprocess 1\tmain\trename\tchannels/sum/value.plist"
      #expect(table.contains { $0.contains(commit) })
    }
    // With the mechanism the same line breaks no promise; at most a move has no sense there.
    let whole = try schedules([], schedule: line).output
    #expect(whole.contains("\nevery promise was kept") || whole.contains("\nastray: "), "\(whole)")
  }

  /// Searches have found the first fourteen lines, and tables of steps have shown the others.
  ///
  /// Drawn orders have found the first line, with hundreds of moves before it was shrunk, a kill at
  /// each step of a bridge the next ones, and a loss of notices the line of `names`. In `lent` the
  /// bridge of a queue's home is killed while the other machine has a job. In `rivals` the bridge
  /// of the home is killed between a change and its reply; or the other bridge is killed there, and
  /// the program suspended until the other program has made a change. In `keys` a job is returned
  /// just before a worker looks at the claims. In `homes` a worker is suspended in a claim until
  /// the queue of the worker has moved.
  @Test(arguments: [
    ("trust-askers", "moved 1 874:kill2", "paused: "),
    ("never-go-back", "carry 1", "error: "), ("never-go-back", "losses 1", "error: "),
    ("forget-cursor", "carry 1", "twice: "),
    ("accept-known", "carry 1 286:kill1", "twice: "),
    ("cancel-by-putting-back", "carry 1 311:kill1", "error: "),
    ("move-with-workers", "homes 1 2109:stop5=3000", "blocked: "),
    ("stay-in-place", "homes 1", "homes: "),
    ("change-copies", "changes 1", "lost: "),
    ("drop-operations", "changes 1 656:kill1", "double: "),
    ("forget-cursor", "talk 1 500:kill1", "twice: "),
    ("forget-record", "talk 1 500:kill2", "error: "),
    ("any-context", "state 1 217:kill2", "lost: "),
    ("no-rescan-after-overflow", "names 1 177:lose2", "unnoticed: "),
    ("never-revoke", "lent 1 2000:kill1", "twice: "),
    ("end-any-claim", "lent 1 2000:kill1", "blocked: "),
    ("operations-beside", "rivals 1 1117:kill1", "double: "),
    ("forget-change", "rivals 1 1068:kill2 1070:stop6=3000", "double: "),
    ("trust-claim", "keys 1 99:go1", "order: "),
    ("return-keys-to-inbox", "keys 1 130:go1", "order: "),
  ])
  func aLineShowsTheMissingMechanismEachTime(
    _ mutant: String, _ line: String, _ violation: String
  ) throws {
    let all = try (0..<Self.repetitions).map { _ in
      try schedules(["--mutant", mutant], schedule: line)
    }
    #expect(all.allSatisfy { $0.status == .exited(1) && $0.output == all[0].output })
    #expect(all[0].output.contains("\n\(violation)"), "\(all[0].output)")
    let whole = try schedules([], schedule: line).output
    #expect(whole.contains("\nevery promise was kept"), "\(whole)")
  }

  /// Runs every order with a harm alone; a step of `.ci/run` adds preemptions to them.
  private func expectEveryHarm(_ scenario: Scenario) throws {
    let extent = Self.isLong ? ["--budget", "600"] : ["--budget", "100", "--preemptions", "0"]
    let result = try schedules(
      ["--scenario", scenario.rawValue, "--drawn", "0", "--jobs", "1", "--complete"] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
  }

  /// The member is killed at each step, of its own and of the requester's.
  @Test func aRequestToAKilledPeerEndsInEveryOrder() throws { try expectEveryHarm(.ask) }

  /// A writer has notified the presenter, which then reads in an access of its own and is refused.
  @Test func aWriterThatIsSuspendedBeforeItLeavesNotifiesAgain() throws {
    let result = try schedules([], schedule: "moved 1 926:stop2=3000")
    #expect(result.output.contains("\nevery promise was kept"), "\(result.output)")
  }

  /// The process that moves the file is killed at each step.
  @Test func aPresenterFollowsEachMoveOrKnowsOfNone() throws {
    let result = try schedules([
      "--scenario", "moved", "--harm", "kills", "--drawn", "0", "--budget", "60", "--jobs", "1",
    ])
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
  }

  /// Each of the two bridges is killed at each step, and its successor carries the rest.
  ///
  /// All steps take a minute; the usual run has time for a part of them.
  @Test func noMessageBetweenMachinesIsLostByAKilledBridge() throws {
    let extent = Self.isLong ? ["--budget", "600", "--complete"] : ["--budget", "8"]
    let result = try schedules(
      ["--scenario", "carry", "--harm", "kills", "--drawn", "0", "--jobs", "1"] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
  }

  /// Each of the two bridges is killed, with its whole loop and a connection to a server.
  ///
  /// All steps take minutes; the usual run has time for a part of them.
  @Test(arguments: Scenario.allCases.filter(\.hasMachines))
  func noJobChangeOrMessageIsLostByAKilledBridge(_ scenario: Scenario) throws {
    let extent = Self.isLong ? ["--budget", "1800", "--complete"] : ["--budget", "4"]
    let result = try schedules(
      ["--scenario", scenario.rawValue, "--harm", "kills", "--drawn", "0", "--jobs", "1"] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
  }

  /// The receiver is killed at each step, and its successor receives the latest context.
  @Test func noContextIsLostInAnyOrder() throws { try expectEveryHarm(.late) }

  /// The call of each step fails, and only what the articles describe may follow.
  ///
  /// All steps take minutes; the usual run has time for a part of them.
  @Test(arguments: Scenario.allCases.filter { $0.drawnHarm.contains(.failures) })
  func aCallThatFailsBreaksNoPromise(_ scenario: Scenario) throws {
    let extent = Self.isLong ? ["--budget", "600", "--complete"] : ["--budget", "2"]
    let result = try schedules(
      [
        "--scenario", scenario.rawValue, "--harm", "failures", "--preemptions", "0",
        "--drawn", "0", "--jobs", "1",
      ] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
  }

  /// The removal has listed the inbox, and is about to remove what it has listed.
  @Test func aMessageThatIsSentDuringARemovalIsNotLost() throws {
    let result = try schedules([], schedule: "members 1 135:go8")
    #expect(result.output.contains("\nevery promise was kept"), "\(result.output)")
  }

  /// Each step of a holder is one before which it is suspended for longer than its lease.
  @Test func noSuspendedHolderCommitsInAnyOrder() throws { try expectEveryHarm(.takeover) }

  /// Two processes save their values, while a third one commits a synced value between two others.
  ///
  /// Each process is killed and suspended at each step.
  @Test func aCutUndoesNoMoreThanItMayWhileValuesAreSaved() throws { try expectEveryHarm(.saves) }

  /// The thread that waits for a lock ends before the sync, and the process returns after it.
  @Test func theEndOfAThreadIsNoReturn() throws {
    let line = "power 1 62:stop0=3000 0:go1 17:go4 18:go0 29:go5 33:go5 38:go5 65:go5"
    let result = try schedules([], schedule: line)
    #expect(result.output.contains("\nevery promise was kept"), "\(result.output)")
  }

  /// A process looks at a member after a notice of its death, and stores what it has seen after
  /// another thread has sent the member a request.
  @Test func aRequestThatIsSentWhileALookEndsIsNotForgotten() throws {
    let line = "left 1 15:kill0 4:go12 11:go7 12:go0 16:go12 29:go7"
    let result = try schedules([], schedule: line)
    #expect(result.output.contains("\nevery promise was kept"), "\(result.output)")
  }

  /// A successor joins and is killed before it has stored its profile.
  ///
  /// The process looks at it while it joins, and sees the presence of one beside the profile of the
  /// other.
  @Test func aPeerThatEndsTwiceIsNotTakenForRunning() throws {
    let line =
      "left 1 183:kill0 0:go12 2:go0 4:go7 5:go12 6:go0 7:go7 8:go12 9:go0 17:go7 18:go0 19:go7 "
      + "20:go4 27:go7 34:go0 105:go13 107:go13 109:go13 111:go13 113:go13 116:go13 118:go13 "
      + "124:go13 129:go13 131:go13 138:go13 144:go13 146:go13 148:go13 150:go13 151:go1 152:go13 "
      + "166:go5 167:go7"
    let result = try schedules([], schedule: line)
    #expect(result.output.contains("\nevery promise was kept"), "\(result.output)")
  }

  /// A thread reads from an empty pipe, and has the turn.
  @Test func aThreadThatWaitsWhereNoScheduleSeesItIsReportedByName() throws {
    let result = try schedules(
      [], schedule: "updaters 1", environment: ["WORMHOLE_SCHEDULE_WAIT=1"])
    #expect(result.status == .exited(1), "\(result.output)\(result.errors)")
    let report =
      "stuck: a thread waits where the schedule does not see it: process 0, thread unseen, after "
      + "the call of 'pipe:"
    #expect(result.output.contains(report), "\(result.output)\(result.errors)")
    #expect(try schedules([], schedule: "updaters 1").status == .exited(0))
  }

  @Test func aScheduleThatMakesNoSenseIsRefused() throws {
    let result = try schedules([], schedule: "nothing 1")
    #expect(result.status == .exited(64))
    #expect(result.errors.contains("cannot replay 'nothing 1'"), "\(result.errors)")
    #expect(try schedules(["--scenario", "none"]).status == .exited(64))
    #expect(try schedules(["--harm", "none,worse"]).status == .exited(64))
  }

  @Test func aLineIsReadAsItWasPrinted() throws {
    let line = "mail 1 12:go3 40:kill0 55:stop0=3000 60:fail1=EIO 70:lose0"
    #expect(try #require(Schedule(line)).description == line)
    #expect(Schedule("mail 1 12:fly3") == nil)
  }

  /// Searches are processes, and report as text.
  @Test func aResultIsReadAsItWasWritten() throws {
    var result = SearchResult()
    (result.orders, result.equal, result.steps) = (3, 4, 6)
    (result.time, result.isComplete, result.traces) = (.milliseconds(7), false, [9])
    result.report = ["mail 1 1:go1", "  lost: message 1", "0\t-\t\tbegins"]
    let text = result.lines.map { $0 + "\n" }.joined()
    let read = try #require(SearchResult(text))
    #expect(read.lines == result.lines)
    #expect(SearchResult("") == nil && SearchResult("counts 1 2\n") == nil)
    var sum = read
    var other = read
    (other.isComplete, other.traces) = (true, [9, 10])
    sum.add(other)
    #expect(!sum.isComplete && sum.orders == 6 && sum.traces == [9, 10])
  }
}
