import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

@testable import WormholeTesting

/// Containers of a test's own, and members in one process and in two.
@Suite struct ContainerTests {
  @Test(.blocking) func containerGoesWithItsObject() throws {
    var container: TemporaryContainer? = try TemporaryContainer()
    let directory = try #require(container?.directory)
    let path = try #require(container?.path)
    do {
      let shared = try #require(try container?.open())
      #expect(shared.directory == path)
      try shared.channel("speed", of: Int.self).put(88)
    }
    #expect((try? Descriptor.open(path: path, [.readOnly, .directory])) != nil)
    container = nil
    let parent = try Descriptor.open(path: "/", [.readOnly, .directory])
    #expect(throws: Errno.noSuchFile) { try parent.status(of: String(directory.dropFirst())) }
  }

  @Test(.blocking) func testsTouchNoneOfTheAccountsGroups() throws {
    let home = try TemporaryDirectory()
    let outcome = try run(
      .testGroups("group.test"),
      environment: [
        "WORMHOLE_ROOT=", "HOME=\(home.path)", "XDG_STATE_HOME=\(home.path)/state",
        "TMPDIR=\(home.path)",
      ])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].hasPrefix(lines[2]) && lines[0].hasSuffix(".wormhole"))
    #expect(lines[1] == lines[2])
    #expect(lines[2].hasPrefix("\(home.path)/wormhole-testing-groups-"))
    #expect(try !home.descriptor.names().contains("state"))
    // The next run removes the leftovers of the first run.
    _ = try run(
      .testGroups("group.test"),
      environment: ["WORMHOLE_ROOT=", "HOME=\(home.path)", "TMPDIR=\(home.path)"])
    let left = try home.descriptor.names().filter { $0.hasPrefix("wormhole-testing-groups-") }
    #expect(left.count == 1)
  }

  /// Its process cannot be seen from here.
  @Test(.blocking) func theGroupsOfATestInAnotherNamespaceAreLeft() throws {
    let home = try TemporaryDirectory()
    let name = "wormhole-testing-groups-\(Int32.max)-1"
    try home.descriptor.makeDirectory(name, mode: 0o700)
    let directory = try home.descriptor.open(name, [.readOnly, .directory])
    #expect(try directory.tryLock(.shared))
    func testGroups() throws -> [String] {
      let outcome = try run(
        .testGroups("group.test"), environment: ["WORMHOLE_ROOT=", "TMPDIR=\(home.path)"])
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return try home.descriptor.names()
    }
    #expect(try testGroups().contains(name))
    try directory.unlock()
    #expect(try !testGroups().contains(name))
  }

  @Test(.blocking) func whatGoesOnInItIsEndedFirst() throws {
    let failures = Heard<WormholeError>()
    var container: TemporaryContainer? = try TemporaryContainer()
    let shared = try #require(try container?.open())
    _ = try shared.channel("speed", of: Int.self).watch { _ in
    } failure: {
      failures.add($0)
    }
    #expect(shared.subscriptions.count == 1)
    container = nil
    #expect(shared.subscriptions.count == 0)
    #expect(failures.all == [])
  }

  @Test func membersSeeEachOther() async throws {
    let two = try await TwoMembers("left", "right")
    #expect(two.first.name == "left")
    #expect(try two.toSecond.reachability == .running)
    #expect(try two.toFirst.reachability == .running)
    let responding = two.first.respond(to: Int.self) { $0 + 1 }
    #expect(try await two.toFirst.request(1, as: Int.self, within: patience) == 2)
    responding.stop()
  }

  @Test func eventuallyWaits() async throws {
    let heard = Heard<Int>()
    try await WormholeTesting.eventually("three looks") {
      heard.add(1)
      return heard.count == 3
    }
    let error = try await failure {
      try await WormholeTesting.eventually("a wonder", within: .milliseconds(1)) { false }
    }
    #expect(error.description.hasPrefix("cannot wait for 'a wonder': the condition did not hold"))
  }
}

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
    try await WormholeTesting.eventually("the watch to join") {
      // The watch is running a moment before it has written its profile; without a profile it has
      // never joined.
      try watch.reachability == .running && watch.profile != nil
    }
    try process.kill()
    #expect(try await process.exitStatus() == .signalled(9))
    try await WormholeTesting.eventually("the watch to go") {
      try watch.reachability == .notRunning
    }
  }

  @Test func processGoesWithItsObject() async throws {
    let container = try TemporaryContainer()
    let shared = try await container.open()
    var process: TestProcess? = try TestProcess(
      "wormhole", ["receive", "--as", "watch"], in: container)
    try await WormholeTesting.eventually("the watch to join") {
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
    #expect(try await endless.exitStatus() == .signalled(9))
    let silent = try await failure { try await endless.waitForOutput("nothing") }
    #expect(silent.code == .notFound)
  }

  @Test(.blocking) func missingProgramIsAnError() throws {
    let error = try failure { _ = try TestProcess("no-such-program", in: nil) }
    #expect(error.description.hasPrefix("cannot start program 'no-such-program'"))
  }
}
