import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Starting a member of another machine, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct WakeBridgeTests {
  /// Nil where no server can be had.
  private let scene: WakeScene?
  private let patience = Duration.seconds(60)

  /// Of `bob` and `eve`, only `bob` may be woken.
  init() throws {
    scene = try WakeScene.start(for: "waking over a real server", ["bob", "eve"])
  }

  private func failure(_ body: () throws -> Void) throws -> WormholeError {
    let error = #expect(throws: WormholeError.self) { try body() }
    return try #require(error)
  }

  @Test func aNamedMemberIsStartedOnItsOwnMachine() throws {
    guard let scene else { return }
    // Several at once have the program started once.
    let wakers = try (0..<3).map { _ in try scene.wake(milliseconds: 60_000) }
    for waker in wakers {
      let outcome = try waker.outcome(within: .seconds(90))
      #expect(outcome.output == "awake\n", "\(outcome.errors)")
    }
    #expect(try scene.here.container.peer("bob").reachability == .running)
    #expect(try scene.folder.read("started").split(separator: "\n").count == 1)
    try scene.end()
    try scene.there.waitUntilRunning("bob", false)
  }

  /// Another machine starts only what this one permits, and learns the reason.
  @Test func noOtherMemberIsStarted() throws {
    guard let scene else { return }
    let error = try failure { try scene.here.container.peer("eve").wake(within: patience) }
    #expect(error.code == .unreachable && error.reason.contains("--may-wake"), "\(error)")
    #expect(try scene.folder.read("started") == "" && scene.there.bridge?.hasEnded == false)
    try scene.end()
  }

  @Test func withoutTheOtherBridgeAWakeFailsAtOnce() throws {
    guard let scene else { return }
    try scene.there.kill()
    let begin = Instant.now
    let error = try failure { try scene.here.container.peer("bob").wake(within: .seconds(120)) }
    #expect(error.code == .unreachable && error.reason.contains("no bridge serves"), "\(error)")
    #expect(.now - begin < .seconds(60))
    try scene.kill(scene.here)
    let alone = try failure { try scene.here.container.peer("bob").wake(within: .seconds(120)) }
    #expect(alone.code == .unreachable && alone.reason.contains("another machine"), "\(alone)")
    try scene.end()
  }
}
