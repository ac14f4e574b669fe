import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Starting, stopping and waiting for other processes.
@Suite(.blocking) struct ChildTests {
  @Test(arguments: [0, 1, 64, 255])
  func exitCodesAreTold(_ code: Int32) throws {
    let status = try run("sh", ["-c", "exit \(code)"]).status
    #expect(status == .exited(code))
    #expect(status.code == code)
  }

  @Test func outputAndErrorsAreKeptApart() throws {
    let outcome = try run("sh", ["-c", "cat; echo words >&2"], input: "data\n")
    #expect(outcome.output == "data\n")
    #expect(outcome.errors == "words\n")
  }

  @Test func environmentIsHandedOver() throws {
    let outcome = try run("sh", ["-c", "echo $GREETING"], environment: ["GREETING=good day"])
    #expect(outcome.output == "good day\n")
  }

  @Test func theOwnEnvironmentIsHandedOverWithoutAnother() throws {
    let pipe = try SharedPipe()
    let child = try Child.spawn("env", ["-0"], output: pipe.writing)
    pipe.closeWriting()
    let settings = try pipe.collect(limit: 1 << 20).split(separator: 0).map(Array.init)
    #expect(try child.wait() == .exited(0))
    let own = Processes.environment(setting: []).map { $0.dropLast().map { UInt8(bitPattern: $0) } }
    #expect(!own.isEmpty)
    #expect(Set(settings) == Set(own))
  }

  @Test func whatDoesNotExistIsNotStarted() throws {
    let folder = try TemporaryDirectory()
    // By its path: PATH may lead through folders that this user may not search.
    #expect(throws: Errno.noSuchFile) { _ = try Child.spawn(folder.path + "/nothing") }
    try folder.write("", to: "closed")
    #expect(throws: Errno.accessDenied) { _ = try Child.spawn(folder.path + "/closed") }
  }

  @Test func aChildInheritsTheStandardDescriptorsOnly() throws {
    // The shell passes descriptor 7 to its program, open and without close-on-exec.
    let script = "exec 7</dev/null; exec \"$0\" \"$1\""
    func says(_ job: PeerJob) throws -> String {
      try run("sh", ["-c", script, PeerJob.program] + job.arguments).output
    }
    #expect(try says(.descriptors) == "0 1 2 7\n")
    #expect(try says(.respawn(.descriptors)) == "0 1 2\n")
  }

  /// Files and pipes of a process get the numbers of its closed streams.
  @Test(arguments: ["0<&-", "2>&-", "0<&- 1>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
  func aProcessWithClosedStreamsStartsPrograms(_ closing: String) throws {
    let folder = try TemporaryDirectory()
    try folder.write("data\n", to: "input")
    let job = PeerJob.filterBare(folder.path)
    let outcome = try run(
      "sh", ["-c", "exec \"$0\" \"$1\" \(closing)", PeerJob.program] + job.arguments)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(try folder.read("piped") == "data\nend\n")
    #expect(try folder.read("output") == "data\nend\n")
  }

  @Test func aStoppedChildGoesOnOrIsKilled() throws {
    let running = try Running("sh", ["-c", "echo ready; exec sleep 600"])
    try eventually("it runs") { try running.output == "ready\n" }
    try running.child.send(.stop)
    try running.waitUntilStopped()
    try running.child.send(.go)
    try eventually("it goes on") { try !Processes.isStopped(running.child.process) }
    try running.child.send(.stop)
    try running.waitUntilStopped()
    try running.child.send(.kill)
    let status = try running.outcome().status
    #expect(status == .signalled(9))
    #expect(status.code == 137)
  }

  @Test func waitingTellsStoppedFromEnded() throws {
    let stopped = try Child.spawn("sleep", ["600"])
    try stopped.send(.stop)
    #expect(try stopped.waitUntilStopped())
    try stopped.send(.kill)
    #expect(try stopped.wait() == .signalled(9))
    let patient: Child
    do {
      let pipe = try Pipe()
      patient = try Child.spawn("cat", input: pipe.reading.rawValue)
      #expect(try patient.poll() == nil)
    }
    // The pipe's writing end is closed, so cat reaches the end of its input.
    try eventually("it ends") { try patient.poll() == .exited(0) }
    let ended = try Child.spawn("true")
    #expect(try !ended.waitUntilStopped())
  }

  /// All signals are blocked in the thread that starts the program.
  @Test func aChildBlocksNoSignal() throws {
    let end = Monitor<ChildStatus?>(nil)
    let thread = try Thread("starter") {
      let status = try? Child.spawn("sh", ["-c", "kill -TERM $$; exit 3"]).wait()
      end.withLock { $0 = status }
    }
    thread.join()
    #expect(end.withLock { $0 } == .signalled(15))
  }

  @Test func signalsToNobodyAreErrors() throws {
    let child = try Child.spawn("true")
    _ = try child.wait()
    #expect(throws: Errno.noSuchProcess) { try child.send(.kill) }
    #expect(throws: Errno.noChild) { _ = try child.wait() }
  }

  @Test func takingTooLongIsAnError() throws {
    #expect(throws: TooLate.self) {
      _ = try run("sleep", ["600"], within: .milliseconds(20))
    }
  }
}
