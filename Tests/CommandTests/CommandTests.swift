import Syscalls
import TestSupport
import Testing

/// The built command: its output, its complaints, its exit status.
@Suite struct CommandTests {
  private let command = Programs.built("wormhole")

  @Test(arguments: [
    (["--help"], "help.txt"), (["-h"], "short-help.txt"), (["demo"], "demo.txt"),
  ])
  func writesWhatIsKeptInFixtures(_ arguments: [String], _ fixture: String) throws {
    let outcome = try run(command, arguments)
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    #expect(outcome.output == (try Fixture.text("command/" + fixture)))
  }

  @Test func saysItsVersion() throws {
    let outcome = try run(command, ["--version"])
    #expect(outcome.status == .exited(0))
    let words = outcome.output.split(separator: " ")
    #expect(words.first == "wormhole")
    #expect(words.last?.split(separator: ".").count == 3)
  }

  @Test(arguments: ["fly", "--fly", "-", ""])
  func refusesAnUnknownVerb(_ verb: String) throws {
    let outcome = try run(command, [verb])
    #expect(outcome.status == .exited(64))
    #expect(outcome.output == "")
    let sentence = "cannot run '\(verb)': there is no such verb; try 'wormhole --help'"
    #expect(outcome.errors == "wormhole: \(sentence)\n")
  }

  @Test func refusesToGuess() throws {
    let outcome = try run(command)
    #expect(outcome.status == .exited(64))
    #expect(outcome.output == "")
    #expect(outcome.errors.split(separator: "\n").count == 1)
  }

  @Test func saysWhenItsOutputIsNotTaken() throws {
    let outcome = try run("sh", ["-c", "exec \"$0\" --help >/dev/full", command])
    #expect(outcome.status == .exited(74))
    let reason = "no space left on device"
    #expect(outcome.errors == "wormhole: cannot write to standard output: \(reason)\n")
  }

  @Test func aClosedPipeEndsItQuietly() throws {
    let outcome = try run("sh", ["-c", "\"$0\" --help | true", command])
    #expect(outcome.errors == "")
  }

  @Test func theDemonstrationLeavesNothingBehind() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(command, ["demo"], environment: ["TMPDIR=\(folder.path)"])
    #expect(outcome.status == .exited(0))
    #expect(try folder.descriptor.names() == [])
  }

  /// A failure in the middle is told in one sentence and cleaned up after.
  @Test func aFailedDemonstrationLeavesNothingBehind() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(
      command, ["demo"],
      environment: ["TMPDIR=\(folder.path)", "WORMHOLE_FAULTS=rename:before:fail=EINVAL"])
    #expect(outcome.status == .exited(70))
    #expect(outcome.errors == "wormhole: cannot show the demonstration: invalid argument\n")
    #expect(try folder.descriptor.names() == [])
  }
}
