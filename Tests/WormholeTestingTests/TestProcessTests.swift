import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

@testable import WormholeTesting

/// Members in processes of their own.
@Suite(.notSanitized("many processes at once"))
struct TestProcessTests {
  @Test func commandIsAMember() async throws {
    let container = try TemporaryContainer()
    let shared = try await container.open()
    let phone = try await shared.join(as: "phone")
    let process = try TestProcess(
      "wormhole", ["receive", "--as", "watch", "--count", "2"], in: container)
    let watch = phone.peer("watch")
    let sent = try await watch.send("hello")
    #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
    try await process.waitForOutput("hello")
    #expect(!process.hasEnded)

    try process.stop()
    #expect(try watch.profile?.isStopped == true)
    let waiting = try await watch.send("and again")
    try process.resume()
    #expect(try await waiting.waitForStatus(within: .seconds(30)) == .delivered)
    #expect(try await process.exitStatus() == .exited(0))
    #expect(try process.output.contains("and again"))
    #expect(try process.standardError == "")
    // Signals to an ended process have no effect.
    try process.kill()
    try process.stop()
  }

  @Test func processIsKilled() async throws {
    let container = try TemporaryContainer()
    let phone = try await container.open().join(as: "phone")
    let process = try TestProcess("wormhole", ["receive", "--as", "watch"], in: container)
    let watch = phone.peer("watch")
    try await WormholeTesting.eventually("the watch to join", within: patience) {
      // The watch is running a moment before it has written its profile; without a profile it has
      // never joined.
      try watch.reachability == .running && watch.profile != nil
    }
    try process.kill()
    #expect(try await process.exitStatus() == .signalled(9))
    try await WormholeTesting.eventually("the watch to go", within: patience) {
      try watch.reachability == .notRunning
    }
  }

  @Test func processGoesWithItsObject() async throws {
    let container = try TemporaryContainer()
    let shared = try await container.open()
    var process: TestProcess? = try TestProcess(
      "wormhole", ["receive", "--as", "watch"], in: container)
    try await WormholeTesting.eventually("the watch to join", within: patience) {
      try shared.peer("watch").reachability == .running
    }
    let number = try #require(process?.processID)
    process = nil
    #expect(throws: Errno.noSuchProcess) { try Processes.send(.kill, to: number) }
  }

  @Test func deadlineKills() async throws {
    let process = try TestProcess("cat", in: nil, input: "words")
    #expect(try await process.exitStatus() == .exited(0))
    #expect(try process.output == "words")
    let endless = try TestProcess(
      "sh", ["-c", "echo $LIFE; while :; do sleep 1; done"], in: nil, environment: ["LIFE": "goes"])
    try await endless.waitForOutput("goes")
    let error = try await failure { _ = try await endless.exitStatus(within: .milliseconds(1)) }
    #expect(error.code == .timedOut)
    let status = try? await endless.exitStatus()
    #expect(status == .signalled(9))
    let silent = try await failure { try await endless.waitForOutput("nothing") }
    #expect(silent.code == .notFound)
  }

  @Test(.blocking) func deadlineKillsWithoutATaskToo() throws {
    let endless = try TestProcess("sh", ["-c", "while :; do sleep 1; done"], in: nil)
    let error = try failure { _ = try endless.exitStatus(within: .milliseconds(1)) }
    #expect(error.code == .timedOut)
    let status = try? endless.exitStatus(within: patience)
    #expect(status == .signalled(9))
  }

  @Test(.blocking) func missingProgramIsAnError() throws {
    let error = try failure { _ = try TestProcess("no-such-program", in: nil) }
    #expect(error.description.hasPrefix("cannot start program 'no-such-program'"))
  }
}
