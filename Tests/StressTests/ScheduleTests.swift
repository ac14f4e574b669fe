import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeStress

/// P3, P4 and P5: real processes keep the promises in every order of their system calls; and where
/// a mechanism is missing, an order shows it, the same each time.
@Suite(.blocking, .notSanitized("about real processes, one thread at a time"))
struct ScheduleTests {
  private func schedules(
    _ arguments: [String], schedule: String? = nil
  ) throws -> ProcessOutcome {
    let environment = schedule.map { ["WORMHOLE_SCHEDULE=\($0)"] } ?? []
    return try TestSupport.run(
      Programs.built("wormhole-stress"), ["schedules"] + arguments, environment: environment)
  }

  private static let isLong = TestRun.isLong

  /// `.ci/run` runs more of them.
  @Test(arguments: Scenario.allCases)
  func everyOrderKeepsThePromises(_ scenario: Scenario) throws {
    let extent =
      Self.isLong
      ? ["--preemptions", "2", "--drawn", "10000", "--budget", "600"]
      : ["--preemptions", "1", "--drawn", "40", "--budget", "8", "--jobs", "2"]
    let result = try schedules(
      ["--scenario", scenario.rawValue, "--seed", "\(TestRun.seed % 1_000_000)"] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    #expect(result.output.contains("\(scenario.rawValue): "))
  }

  /// Everything that could differ comes from the line: the same steps, clocks and results.
  @Test(arguments: [
    "updaters 1 1:go1", "takeover 1 2:stop0=3000", "power 1 6:go1 13:stop0=3000", "power 2 5:kill0",
    "mail 1 33:kill0", "mail 7 20:lose0 33:stop0=3000", "cancel 3 20:stop1=3000",
  ])
  func aLineGivesTheSameStepsEachTime(_ line: String) throws {
    let first = try schedules([], schedule: line).output
    #expect(first.contains("the steps: "), "\(first)")
    for _ in 0..<(Self.isLong ? 99 : 4) {
      let again = try schedules([], schedule: line).output
      #expect(again == first)
    }
  }

  /// A sync is left out, the fence is, and more: each is found, shrunk to few moves, and found
  /// again three times of three, in the same table of steps.
  @Test(arguments: [
    ("trust-open-file", "updaters", 1, "lost: "), ("no-file-sync", "power", 0, "unsynced: "),
    ("no-directory-sync", "power", 0, "unsynced: "), ("no-removal", "takeover", 2, "lost: "),
    ("steal-without-generation", "takeover", 2, "lost: "),
    ("open-staging-late", "takeover", 2, "lost: "),
  ])
  func aMechanismThatIsTakenOutIsFoundAndFoundAgain(
    _ mutant: String, _ scenario: String, _ moves: Int, _ violation: String
  ) throws {
    let disabled = ["--mutant", mutant]
    let found = try schedules(
      ["--scenario", scenario, "--drawn", "0", "--budget", "300", "--jobs", "2"] + disabled)
    #expect(found.status == .exited(1), "\(found.output)\(found.errors)")
    #expect(found.output.contains("\n  \(violation)"), "\(found.output)")
    let parts = found.errors.split(separator: "'")
    let line = try #require(parts.count > 1 ? String(parts[1]) : nil, "\(found.errors)")
    let schedule = try #require(Schedule(line))
    #expect(schedule.entries.count <= moves, "\(line)")
    let again = try (0..<3).map { _ in try schedules(disabled, schedule: line) }
    #expect(again.allSatisfy { $0.status == .exited(1) && $0.output == again[0].output })
    #expect(again[0].output.contains("\n\(violation)"), "\(again[0].output)")
    // The same table as the search has printed: step, process, thread, call and file.
    let table = again[0].output.split(separator: "\n").dropLast()
    #expect(table.count > 10 && found.output.contains(table.joined(separator: "\n")))
    #expect(table.contains { $0.contains("\tprocess 1\tmain\trename\tchannels/sum/value.plist") })
    // With the mechanism the same line breaks no promise; at most a move has no sense there.
    let whole = try schedules([], schedule: line).output
    #expect(whole.contains("\nevery promise was kept") || whole.contains("\nastray: "), "\(whole)")
  }

  /// Each step of a holder is one before which it is suspended for longer than its lease.
  @Test func noSuspendedHolderCommitsInAnyOrder() throws {
    let result = try schedules([
      "--scenario", "takeover", "--preemptions", "1", "--drawn", "0", "--budget", "60",
      "--jobs", "2",
    ])
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
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
    (result.orders, result.equal, result.drawn, result.steps) = (3, 4, 5, 6)
    (result.time, result.drawnTime, result.isComplete) = (.milliseconds(7), .milliseconds(8), false)
    (result.users, result.relied) = ([9: 2], [9: 2])
    result.report = ["mail 1 1:go1", "  lost: message 1", "0\t-\t\tbegins"]
    let text = result.lines.map { $0 + "\n" }.joined()
    let read = try #require(SearchResult(text))
    #expect(read.lines == result.lines)
    #expect(SearchResult("") == nil && SearchResult("counts 1 2\n") == nil)
    // One thread has left out orders because no other thread uses that, and another one does.
    #expect(read.isSound(processes: 3))
    var sum = read
    var other = read
    other.users = [9: 4]
    sum.add(other)
    #expect(!sum.isSound(processes: 3) && sum.orders == 6)
  }
}
