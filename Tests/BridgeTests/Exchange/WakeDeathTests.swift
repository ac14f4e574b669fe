import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Bridges that are killed while they wake a member of another machine.
@Suite(.blocking, .notSanitized("about processes")) struct WakeDeathTests {
  private let server: TestServer?
  private let folder: TemporaryDirectory

  init() throws {
    server = try TestServer.start(for: "kills during a wake")
    folder = try TemporaryDirectory()
    try folder.write("", to: "started")
  }

  /// Two machines; the program of `bob` is registered on the second one, and is suspended before it
  /// joins.
  private func machines(_ server: TestServer) throws -> (
    here: BridgedMachine, there: BridgedMachine
  ) {
    try BridgedMachine.setUp(server)
    let here = try BridgedMachine(folder.path + "/here", server)
    let there = try BridgedMachine(folder.path + "/there", server)
    try there.container.registerLaunch(
      of: "bob", program: PeerJob.program,
      arguments: PeerJob.awaken(folder.path + "/started", "bob", .properly).arguments,
      environment: ["WORMHOLE_FAULTS": "open~bob/presence:before:stop"])
    let member = try there.container.join(as: "bob")
    try here.start()
    try start(there)
    try here.waitUntilRunning("bob")
    member.leave()
    try here.waitUntilRunning("bob", false)
    return (here, there)
  }

  private func start(_ there: BridgedMachine) throws { try there.start(["--may-wake", "bob"]) }

  private func kill(_ machine: BridgedMachine) throws {
    try machine.kill()
    try eventually("the bridge has ended", within: .seconds(30)) {
      machine.bridge?.hasEnded == true
    }
  }

  private func wake(_ here: BridgedMachine) throws -> Running {
    try Running(.wake(here.path, "bob", milliseconds: 120_000))
  }

  /// The processes of the program that were started.
  private func started() throws -> [Int32] {
    try folder.read("started").split(separator: "\n").compactMap {
      $0.split(separator: " ").first.flatMap { Int32($0) }
    }
  }

  private func waitUntilSuspended() throws -> Int32 {
    try eventually("the program is suspended before it joins", within: .seconds(60)) {
      try started().first.flatMap { try Processes.isStopped($0) ? $0 : nil }
    }
  }

  private func resume(_ process: Int32, awaitedBy wakers: [Running]) throws {
    try Processes.send(.go, to: process)
    for waker in wakers {
      let outcome = try waker.outcome(within: .seconds(150))
      #expect(outcome.output == "awake\n", "\(outcome.errors)")
    }
  }

  private func end(_ there: BridgedMachine) throws {
    try folder.descriptor.unlink("started")
    try there.waitUntilRunning("bob", false)
  }

  /// The next bridge asks again, and the program that was started is waited for.
  @Test func aKillOfTheBridgeThatAsksStartsTheProgramOnce() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    let first = try wake(here)
    let process = try waitUntilSuspended()
    try kill(here)
    try here.start()
    try here.waitUntilRunning("bob", false)
    let second = try wake(here)
    try waitUntilAskedAgain(here)
    try resume(process, awaitedBy: [first, second])
    #expect(try started() == [process])
    try end(there)
  }

  /// The wake is asked of the next bridge, and the program that was started is waited for.
  @Test func aKillOfTheBridgeThatStartsTheMemberStartsTheProgramOnce() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    let first = try wake(here)
    let process = try waitUntilSuspended()
    try kill(there)
    try start(there)
    try waitUntilAskedAgain(there)
    let second = try wake(here)
    try resume(process, awaitedBy: [first, second])
    #expect(try started() == [process])
    try end(there)
  }

  /// If the program has died, too, it is started once more, by the next bridge.
  @Test func aKillOfTheBridgeAndOfTheProgramStartsItAgain() throws {
    guard let server else { return }
    let (here, there) = try machines(server)
    let waker = try wake(here)
    let process = try waitUntilSuspended()
    try kill(there)
    try Processes.send(.kill, to: process)
    try start(there)
    try eventually("the program is started again, or the wake ends", within: .seconds(120)) {
      if waker.hasEnded { return true }
      return try started().dropFirst().first.map { try Processes.isStopped($0) } ?? false
    }
    let next = try #require(try started().dropFirst().first, "the program is started again")
    try resume(next, awaitedBy: [waker])
    #expect(try started() == [process, next])
    try end(there)
  }

  /// Waits until the bridge states that it has asked, or was asked, for a wake.
  private func waitUntilAskedAgain(_ machine: BridgedMachine) throws {
    try eventually("the bridge wakes 'bob'", within: .seconds(90)) {
      try machine.status(["--json"]).firstMatch(of: /"wakes":\{[^}]*[1-9]/) != nil
    }
  }
}
