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

  @Test(arguments: Scenario.allCases)
  func everyOrderKeepsThePromises(_ scenario: Scenario) throws {
    let extent =
      Self.isLong
      ? ["--preemptions", "2", "--drawn", "100000", "--budget", "900"]
      : ["--preemptions", "1", "--drawn", "30", "--budget", "6"]
    let result = try schedules(
      ["--scenario", scenario.rawValue, "--seed", "\(TestRun.seed % 1_000_000)"] + extent)
    #expect(result.status == .exited(0), "\(result.output)\(result.errors)")
    #expect(result.output.contains("\(scenario.rawValue): "))
  }

  @Test(arguments: [("trust-open-file", "updaters"), ("no-removal", "takeover")])
  func aMechanismThatIsTakenOutIsFoundAndFoundAgain(
    _ mutant: String, _ scenario: String
  ) throws {
    let disabled = ["--mutant", mutant]
    let found = try schedules(
      ["--scenario", scenario, "--drawn", "0", "--budget", "120"] + disabled)
    #expect(found.status == .exited(1), "\(found.output)\(found.errors)")
    let parts = found.errors.split(separator: "'")
    let line = try #require(parts.count > 1 ? String(parts[1]) : nil, "\(found.errors)")
    let again = try (0..<3).map { _ in try schedules(disabled, schedule: line) }
    #expect(again.allSatisfy { $0.status == .exited(1) && $0.output == again[0].output })
    #expect(again[0].output.contains("lost: "), "\(again[0].output)")
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
}
