import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Bridges that are killed while they wake a member of another machine.
@Suite(.blocking, .notSanitized("about processes")) struct WakeDeathTests {
  /// Nil where no server can be had.
  private let scene: WakeScene?

  /// The program of `bob` is suspended before it joins.
  init() throws {
    scene = try WakeScene.start(
      for: "kills during a wake", faults: "open~bob/presence:before:stop")
  }

  private func waitUntilSuspended(_ scene: WakeScene) throws -> Int32 {
    try eventually("the program is suspended before it joins", within: .seconds(60)) {
      try scene.started().first.flatMap { try Processes.isStopped($0) ? $0 : nil }
    }
  }

  private func resume(_ process: Int32, awaitedBy wakers: [Running]) throws {
    try Processes.send(.go, to: process)
    for waker in wakers {
      let outcome = try waker.outcome(within: .seconds(150))
      #expect(outcome.output == "awake\n", "\(outcome.errors)")
    }
  }

  private func end(_ scene: WakeScene) throws {
    try scene.end()
    try scene.there.waitUntilRunning("bob", false)
  }

  /// The next bridge asks again, and the program that was started is waited for.
  @Test func aKillOfTheBridgeThatAsksStartsTheProgramOnce() throws {
    guard let scene else { return }
    let first = try scene.wake()
    let process = try waitUntilSuspended(scene)
    try scene.kill(scene.here)
    try scene.here.start()
    try scene.here.waitUntilRunning("bob", false)
    let second = try scene.wake()
    try waitUntilAskedAgain(scene.here)
    try resume(process, awaitedBy: [first, second])
    #expect(try scene.started() == [process])
    try end(scene)
  }

  /// The wake is asked of the next bridge, and the program that was started is waited for.
  @Test func aKillOfTheBridgeThatStartsTheMemberStartsTheProgramOnce() throws {
    guard let scene else { return }
    let first = try scene.wake()
    let process = try waitUntilSuspended(scene)
    try scene.kill(scene.there)
    try scene.startThere()
    try waitUntilAskedAgain(scene.there)
    let second = try scene.wake()
    try resume(process, awaitedBy: [first, second])
    #expect(try scene.started() == [process])
    try end(scene)
  }

  /// If the program has died, too, it is started once more, by the next bridge.
  @Test func aKillOfTheBridgeAndOfTheProgramStartsItAgain() throws {
    guard let scene else { return }
    let waker = try scene.wake()
    let process = try waitUntilSuspended(scene)
    try scene.kill(scene.there)
    try Processes.send(.kill, to: process)
    try scene.startThere()
    try eventually("the program is started again, or the wake ends", within: .seconds(120)) {
      if waker.hasEnded { return true }
      return try scene.started().dropFirst().first.map { try Processes.isStopped($0) } ?? false
    }
    let next = try #require(try scene.started().dropFirst().first, "the program is started again")
    try resume(next, awaitedBy: [waker])
    #expect(try scene.started() == [process, next])
    try end(scene)
  }

  /// Waits until the bridge states that it has asked, or was asked, for a wake.
  private func waitUntilAskedAgain(_ machine: BridgedMachine) throws {
    try eventually("the bridge wakes 'bob'", within: .seconds(90)) {
      try machine.status(["--json"]).firstMatch(of: /"wakes":\{[^}]*[1-9]/) != nil
    }
  }
}
