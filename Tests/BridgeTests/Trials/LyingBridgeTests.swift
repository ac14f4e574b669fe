import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

/// Two bridges, and a proxy in front of a real server that drops, delays, repeats, cuts, suspends
/// and replies with errors: whatever it does, nothing is lost, repeated unmarked or reordered, and
/// nothing is stuck when it has become honest.
@Suite(.blocking, .serialized, .notSanitized("many bridges at once")) struct LyingBridgeTests {
  private static let lanes = 6
  private static let runs = TestRun.isLong ? 10_000 : 300
  private static let time = TestRun.isLong ? Duration.seconds(3600) : .seconds(20)

  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func whateverTheServersDoNothingIsLostRepeatedOrStuck() throws {
    guard let server = try TestServer.start(for: "lies between two bridges") else { return }
    try BridgedMachine.setUp(server)
    let failures = Heard<String>()
    let next = Monitor(0)
    let end = Instant.now + Self.time
    let finished = Monitor((runs: 0, lies: [String: Int]()))
    let threads = try (0..<Self.lanes).map { _ in
      try Thread("lane") {
        while Instant.now < end, failures.count < 3 {
          let run = next.withLock { next in
            next += 1
            return next
          }
          guard run <= Self.runs else { return }
          let seed = TestRun.seed &+ UInt64(run)
          do {
            let lies = try LyingRun(server, seed).run()
            finished.withLock {
              $0.runs += 1
              $0.lies.merge(lies) { $0 + $1 }
            }
          } catch {
            failures.add("seed \(seed): \(error)")
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.all == [])
    let (runs, lies) = finished.withLock { $0 }
    #expect(runs > 5)
    print("\(runs) runs from seed \(TestRun.seed); lies: \(lies.sorted { $0.key < $1.key })")
  }
}

/// One run: two containers with bridges, each behind a proxy, and messages both ways.
private final class LyingRun {
  private let seed: UInt64
  private let server: TestServer
  private let folder: TemporaryDirectory
  private var random: SeededRandom

  struct Wrong: Error, CustomStringConvertible { let description: String }

  init(_ server: TestServer, _ seed: UInt64) throws {
    (self.server, self.seed) = (server, seed)
    folder = try TemporaryDirectory()
    random = SeededRandom(seed: seed)
  }

  /// Returns the lies that were told.
  func run() throws -> [String: Int] {
    let sides = [
      try ProxiedMachine(folder.path + "/a", "al", server, group: "g\(seed)", seed),
      try ProxiedMachine(folder.path + "/b", "bob", server, group: "g\(seed)", seed &+ 1 << 32),
    ]
    let heard = [Heard<String>(), Heard<String>()]
    var subscriptions: [Subscription] = []
    for (side, heard) in zip(sides, heard) {
      subscriptions.append(
        try side.member.receive(Int.self) { number, message in
          heard.add("\(number)" + (message.isRedelivered ? " again" : ""))
        })
    }
    defer {
      for subscription in subscriptions { subscription.stop() }
    }
    var sent: [[Sent]] = [[], []]
    var (lies, problem): ([String: Int], String?) = ([:], nil)
    do {
      for number in 0..<12 {
        let from = number % 2
        var options = SendOptions()
        (options.durability, options.wantsOutcome) = (.process, true)
        sent[from].append(
          try sides[from].member.peer(sides[1 - from].member.name).send(number, options))
        let pause = Duration.milliseconds(Int.random(in: 0...120, using: &random))
        let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
      }
      problem = try findProblem(sides, sent, heard)
    } catch {
      problem = "\(error)"
    }
    for side in sides { lies.merge(side.stop()) { $0 + $1 } }
    if let problem { throw Wrong(description: "\(problem); lies \(lies)") }
    return lies
  }

  private func findProblem(
    _ sides: [ProxiedMachine], _ sent: [[Sent]], _ heard: [Heard<String>]
  ) throws -> String? {
    // Afterwards each time limit of the client passes at most once.
    for side in sides { side.beHonest() }
    let end = Instant.now + .seconds(60)
    for (from, all) in sent.enumerated() {
      for (index, one) in all.enumerated() {
        let outcome = one.waitForEnd(until: end)
        guard outcome == .delivered else {
          let states = try sides.map { try BridgeStatus.read($0.container)?.lines ?? [] }
          return "message \(index) from \(from) is stuck: \(String(describing: outcome)), "
            + "\(try one.state), \(states), \(sides.map(\.failure))"
        }
      }
    }
    for (from, heard) in [(1, heard[0]), (0, heard[1])] {
      let wanted = sent[from].indices.map { "\(2 * $0 + from)" }
      if heard.all != wanted { return "\(heard.all) arrived from \(from) in place of \(wanted)" }
    }
    return sides.compactMap(\.failure).first.map { "a bridge has ended: \($0)" }
  }
}
