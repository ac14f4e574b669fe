import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole bridge trial`: three machines, three servers, and everything dies.
@Suite(.blocking, .notSanitized("about processes")) struct TrialTests {
  private static let command = ["bridge", "trial"]

  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func whateverDiesNothingIsLostRepeatedOrReordered() throws {
    let messages = TestRun.isLong ? "20000" : "480"
    let outcome = try run(
      Programs.built("wormhole"),
      Self.command + ["--messages", messages, "--seed", "\(TestRun.seed)"],
      within: .seconds(1800))
    guard ![.exited(69), .exited(77)].contains(outcome.status) else {
      return skip("a trial of three machines", because: outcome.errors)
    }
    #expect(outcome.status == .exited(0), "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("waits notified"))
    print(outcome.output)
  }

  @Test func withoutAServerTheTrialIsRefusedVisibly() throws {
    let folder = try TemporaryDirectory()
    for (server, name) in [("", "nats-server"), ("/nowhere", "/nowhere")] {
      let outcome = try run(
        Programs.built("wormhole"), Self.command,
        environment: ["PATH=\(folder.path)", "WORMHOLE_NATS_SERVER=\(server)"])
      #expect(outcome.status == .exited(69), "\(outcome)")
      #expect(outcome.errors.contains("there is no program '\(name)'"), "\(outcome.errors)")
    }
  }

  @Test func withoutRootTheTrialIsRefusedVisibly() throws {
    guard Processes.effectiveUser != 0 else {
      return skip("a trial without root", because: "this user is root")
    }
    let outcome = try run(
      Programs.built("wormhole"), Self.command, environment: ["WORMHOLE_NATS_SERVER=/bin/true"])
    #expect([.exited(69), .exited(77)].contains(outcome.status), "\(outcome)")
    #expect(outcome.errors.contains("cannot try bridges between machines"), "\(outcome.errors)")
  }

  /// The command alone, as it is installed.
  @Test func withoutTheProgramBesideTheCommandTheTrialIsRefusedVisibly() throws {
    let folder = try TemporaryDirectory()
    let copied = try run("cp", [Programs.built("wormhole"), folder.path + "/wormhole"])
    try #require(copied.status == .exited(0))
    let outcome = try run(folder.path + "/wormhole", Self.command)
    #expect(outcome.status == .exited(127), "\(outcome)")
    #expect(outcome.errors.contains("WormholeTrial"), "\(outcome.errors)")
  }

  @Test(arguments: [["--messages", "3"], ["--seed", "x"], ["now"]])
  func wrongArgumentsAreRefused(_ words: [String]) throws {
    let outcome = try run(
      Programs.built("wormhole"), Self.command + words,
      environment: ["WORMHOLE_NATS_SERVER=/nowhere"])
    #expect(outcome.status == .exited(64), "\(outcome)")
  }
}
