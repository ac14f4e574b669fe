import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The demonstration, which shows real processes and removes its files afterwards.
@Suite(.blocking, .notSanitized("about what a command prints")) struct DemoTests {
  private func demo(_ folder: TemporaryDirectory, _ more: [String] = []) throws -> Running {
    try Running(
      Programs.built("wormhole"), ["demo"], environment: environment(folder) + more)
  }

  private func environment(_ folder: TemporaryDirectory) -> [String] {
    ["TMPDIR=\(folder.path)", "WORMHOLE_CONTAINER=nowhere", "WORMHOLE_GROUP=none"]
  }

  /// The name of the program has no meaning in the directory of the demonstration.
  @Test func itGoesAsItIsKeptAndLeavesNothingBehind() throws {
    let folder = try TemporaryDirectory()
    let outcome = try Running(
      "sh", ["-c", "cd \"$BUILT\" && exec ./wormhole demo"],
      environment: ["BUILT=\(Programs.built)"] + environment(folder)
    ).outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    #expect(outcome.output == (try Fixture.text("command/demo.txt")))
    #expect(try folder.descriptor.names() == [])
  }

  /// Whether any process was started with that path among its words.
  private func isNamed(_ path: String) throws -> Bool {
    let words = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    return try run("sh", ["-c", words]).output.contains(path)
  }

  @Test func aPlaceSetToNothingIsNotSet() throws {
    let fault = "WORMHOLE_FAULTS=mkdir~go-on:before:fail=EINVAL"
    let outcome = try run(
      Programs.built("wormhole"), ["demo"], environment: ["TMPDIR=", fault])
    #expect(
      outcome.errors.hasPrefix("wormhole: cannot show the demonstration in '/tmp/wormhole-demo-"))
  }

  /// A failure in the middle is reported in one sentence, and its files are removed.
  @Test func aFailureLeavesNothingBehind() throws {
    let folder = try TemporaryDirectory()
    let outcome = try demo(folder, ["WORMHOLE_FAULTS=mkdir~go-on:before:fail=EINVAL"]).outcome()
    #expect(outcome.status == .exited(70))
    let sentence = "wormhole: cannot show the demonstration in '\(folder.path)"
    #expect(outcome.errors.hasPrefix(sentence))
    #expect(outcome.errors.hasSuffix(": invalid argument\n"))
    #expect(try folder.descriptor.names() == [])
    try eventually("nothing runs on") { try !isNamed(folder.path) }
  }

  @Test func anInterruptionLeavesNothingBehind() throws {
    let folder = try TemporaryDirectory()
    let running = try demo(folder)
    try eventually("the last act begins") { try running.output.contains("is suspended while") }
    try running.child.send(.interrupt)
    #expect(try running.outcome().status == .signalled(2))
    #expect(try folder.descriptor.names() == [])
    try eventually("nothing runs on") { try !isNamed(folder.path) }
  }

  /// The signal arrives when a process has just been started, and is not yet registered anywhere.
  @Test func whoIsJustBeingStartedIsEndedToo() throws {
    let folder = try TemporaryDirectory()
    let running = try demo(folder, ["WORMHOLE_FAULTS=spawn@1:after:delay=1000"])
    try eventually("its first process runs") { try isNamed(folder.path) }
    try running.child.send(.terminate)
    #expect(try running.outcome().status == .signalled(15))
    #expect(try !isNamed(folder.path))
    #expect(try folder.descriptor.names() == [])
  }
}
