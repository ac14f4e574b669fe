import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// A program's standard output is a terminal, which a thread reads.
@Suite(.notSanitized("the programs run in processes of their own")) struct TerminalOutputTests {
  private func start(_ job: PeerJob, terminal: Bool = true) throws -> TestProcess {
    try TestProcess("TestPeer", job.arguments, in: nil, terminal: terminal)
  }

  private func shell(
    _ script: String, environment: [String: String] = [:], terminal: Bool = true
  ) throws -> TestProcess {
    try TestProcess("sh", ["-c", script], in: nil, environment: environment, terminal: terminal)
  }

  @Test func aPrintedLineIsSeenAtOnce() async throws {
    let process = try start(.print("ready", times: 1, killsItself: false))
    try await process.waitForOutput("ready\n")
    #expect(!process.hasEnded)
    #expect(try process.output == "ready\n")
  }

  /// Without a terminal the line is lost with the program.
  @Test(arguments: [true, false])
  func theLastLineOfAKilledProgramIsSeen(_ terminal: Bool) async throws {
    for _ in 1...20 {
      let process = try start(.print("last", times: 1, killsItself: true), terminal: terminal)
      #expect(try await process.exitStatus() == .signalled(9))
      #expect(try process.output == (terminal ? "last\n" : ""))
    }
  }

  /// More than the terminal stores: the program neither waits for a reader nor loses a byte.
  @Test func muchOutputArrivesUnchanged() async throws {
    let line = String(repeating: "0123456789", count: 10_000)
    let process = try start(.print(line, times: 50, killsItself: true))
    #expect(try await process.exitStatus() == .signalled(9))
    #expect(try process.output == String(repeating: line + "\n", count: 50))
  }

  @Test func bytesArriveAsTheyAreWritten() async throws {
    let process = try shell(#"printf 'a\003b\004c\021d\023e\tf\r\n\n\177\015g\377'"#)
    #expect(try await process.exitStatus() == .exited(0))
    let expected = "a\u{3}b\u{4}c\u{11}d\u{13}e\tf\r\n\n\u{7F}\rg\u{FFFD}"
    #expect(try process.output.unicodeScalars.elementsEqual(expected.unicodeScalars))
  }

  @Test func onlyStandardOutputIsATerminal() async throws {
    let script = """
      for stream in 0 1 2; do if test -t $stream; then echo $stream; fi; done
      echo "$TERM, $NO_COLOR"
      echo error >&2
      """
    let own = Processes.environment("TERM") ?? ""
    for (terminal, environment, expected) in [
      (true, ["NO_COLOR": ""], "1\ndumb, \n"), (true, [:], "1\ndumb, 1\n"),
      (true, ["TERM": "vt100"], "1\nvt100, 1\n"), (false, ["NO_COLOR": "2"], "\(own), 2\n"),
    ] {
      let process = try shell(script, environment: environment, terminal: terminal)
      #expect(try await process.exitStatus() == .exited(0))
      #expect(try process.output == expected)
      #expect(try process.standardError == "error\n")
    }
  }

  /// A child process has the terminal after the program's end, and may write without end.
  @Test(arguments: ["sleep 3600", "yes"])
  func aChildDoesNotDelayTheEnd(_ program: String) async throws {
    let process = try shell("echo first; \(program) & echo pid=$! >&2; exit 3")
    #expect(try await process.exitStatus() == .exited(3))
    let child = try #require(Int32(try process.standardError.dropFirst(4).dropLast()))
    defer { try? Processes.send(.kill, to: child) }
    #expect(try process.output.hasPrefix("first\n"))
    let before = try process.output
    if program == "yes" {
      try await eventually("more output") { try process.output.utf8.count > before.utf8.count }
    }
  }

  @Test(.blocking) func theMissingTerminalIsReported() throws {
    try FaultPoints.with([FaultRule(.open, path: "ptmx", .fail(.noSpace))]) {
      let error = try failure { _ = try start(.linger) }
      #expect(error.description.contains("there is no terminal for its output: no space left"))
      _ = try start(.linger, terminal: false)
    }
  }
}
