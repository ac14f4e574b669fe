import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Starting a member of another machine, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct WakeBridgeTests {
  private let server: TestServer?
  private let folder: TemporaryDirectory
  private let patience = Duration.seconds(60)

  init() throws {
    server = try TestServer.start(for: "waking over a real server")
    folder = try TemporaryDirectory()
    try folder.write("", to: "started")
  }

  /// Two machines; `bob` and `eve` are registered on the second one, and only `bob` may be woken.
  private func machines(_ server: TestServer) throws -> (
    here: BridgedMachine, there: BridgedMachine
  ) {
    try BridgedMachine.setUp(server)
    let here = try BridgedMachine(folder.path + "/here", server)
    let there = try BridgedMachine(folder.path + "/there", server)
    for name in ["bob", "eve"] {
      try there.container.registerLaunch(
        of: name, program: PeerJob.program,
        arguments: PeerJob.awaken(folder.path + "/started", name, .properly).arguments,
        environment: ["WORMHOLE_FAULTS": ""])
      // The first join makes the machine the home.
      let member = try there.container.join(as: name)
      if name == "bob" { try start(here, there) }
      try here.waitUntilRunning(name)
      member.leave()
    }
    for name in ["bob", "eve"] { try here.waitUntilRunning(name, false) }
    return (here, there)
  }

  private func start(_ here: BridgedMachine, _ there: BridgedMachine) throws {
    try here.start()
    try there.start(["--may-wake", "bob"])
  }

  private func failure(_ body: () throws -> Void) throws -> WormholeError {
    let error = #expect(throws: WormholeError.self) { try body() }
    return try #require(error)
  }

  private func end() throws {
    try folder.descriptor.unlink("started")
  }

  @Test func aNamedMemberIsStartedOnItsOwnMachine() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    // Several at once have the program started once.
    let wakers = try (0..<3).map { _ in
      try Running(.wake(here.path, "bob", milliseconds: 60_000))
    }
    for waker in wakers {
      let outcome = try waker.outcome(within: .seconds(90))
      #expect(outcome.output == "awake\n", "\(outcome.errors)")
    }
    #expect(try here.container.peer("bob").reachability == .running)
    #expect(try folder.read("started").split(separator: "\n").count == 1)
    try end()
    try there.waitUntilRunning("bob", false)
  }

  /// Another machine starts only what this one permits, and learns the reason.
  @Test func noOtherMemberIsStarted() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    let error = try failure { try here.container.peer("eve").wake(within: patience) }
    #expect(error.code == .unreachable && error.reason.contains("--may-wake"), "\(error)")
    #expect(try folder.read("started") == "" && there.bridge?.hasEnded == false)
    try end()
  }

  @Test func withoutTheOtherBridgeAWakeFailsAtOnce() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    try there.kill()
    let begin = Instant.now
    let error = try failure { try here.container.peer("bob").wake(within: .seconds(120)) }
    #expect(error.code == .unreachable && error.reason.contains("no bridge serves"), "\(error)")
    #expect(.now - begin < .seconds(60))
    try here.kill()
    try eventually("the bridge has ended", within: .seconds(30)) { here.bridge?.hasEnded == true }
    let alone = try failure { try here.container.peer("bob").wake(within: .seconds(120)) }
    #expect(alone.code == .unreachable && alone.reason.contains("another machine"), "\(alone)")
    try end()
  }
}
