import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A bridge is killed before each of its calls, one after the other, and each of its calls fails,
/// over a real server: no message is lost, repeated or reordered, and each sender is notified.
@Suite(.blocking, .serialized, .notSanitized("many processes, one after the other"))
struct BridgeDeathTests {
  enum Side: Sendable, CaseIterable { case sender, receiver }

  /// The machines, and the messages from `al` on one machine to `bob` on the other one.
  private final class Scene {
    let server: TestServer
    let folder = try! TemporaryDirectory()
    let (here, there): (BridgedMachine, BridgedMachine)
    let (al, bob): (Member, Member)
    let heard = Heard<Handed>()
    let outcomes = Heard<Outcome.Status>()
    private(set) var count = 0
    private var lives = 0
    private let mortal: BridgedMachine
    private var subscriptions: [Subscription] = []

    init(_ server: TestServer, _ side: Side) throws {
      self.server = server
      try BridgedMachine.setUp(server)
      here = try BridgedMachine(folder.path + "/here", server)
      there = try BridgedMachine(folder.path + "/there", server)
      (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
      try here.start()
      try there.start()
      try here.waitUntilRunning("bob")
      mortal = side == .sender ? here : there
      try mortal.kill()
      _ = try mortal.bridge?.outcome()
      subscriptions = [
        try bob.receive(Int.self) { [heard] number, message in
          heard.add(Handed(number, message.attempt, marked: message.isRedelivered))
        },
        try al.watchOutcomes { [outcomes] in outcomes.add($0.status) },
      ]
    }

    /// Sends more as soon as everything before is settled.
    func send() throws {
      guard isSettled else { return }
      for _ in 0..<3 {
        count += 1
        var options = SendOptions()
        options.durability = .process
        options.wantsOutcome = true
        try al.peer("bob").send(count, options)
      }
    }

    /// Whether each sender is notified, and the mortal bridge has removed its records.
    ///
    /// Otherwise the records of many short lives would pile up, and each life would take longer.
    var isSettled: Bool {
      guard outcomes.count >= count else { return false }
      let path = ["bridge", "out"].reduce(mortal.path) { $0 + "/" + $1 }
      let others = try? Descriptor.open(path: path, [.readOnly, .directory]).names()
      return (others ?? []).allSatisfy { other in
        let names = try? Descriptor.open(path: path + "/" + other, [.readOnly, .directory]).names()
        return names == ["flow.plist"]
      }
    }

    /// One life of the mortal bridge, until it ends or has carried everything; returns also
    /// whether it has made the call with that number.
    func live(_ fault: String, _ point: Int) throws -> (bridge: Running, isReached: Bool) {
      lives += 1
      let trace = "trace\(lives)"
      try folder.write("", to: trace)
      let bridge = try Running(
        .bridge(
          mortal.path, group: "g", address: server.address, tokenFile: server.tokenFile),
        environment: [
          "WORMHOLE_FAULTS=\(fault)", "WORMHOLE_FAULT_TRACE=\(folder.path)/\(trace)",
        ])
      let end = Instant.now + .seconds(60)
      while !bridge.hasEnded, !isSettled {
        guard Instant.now < end else {
          let calls = try folder.read(trace).split(separator: "\n")
          let call = calls.first { $0.hasPrefix("\(point) ") } ?? ""
          try? bridge.child.send(.kill)
          throw Stuck(
            description: "\(fault): \(call): it carries nothing: \(try bridge.outcome().errors)")
        }
        let _: Void? = Monitor(()).wait(until: .now + .milliseconds(5)) { _ in nil }
      }
      let isReached = try folder.read(trace).split(separator: "\n").count >= point
      try folder.descriptor.unlink(trace)
      return (bridge, isReached)
    }

    /// Carries what is left.
    func finish() throws {
      try send()
      try? live("", 1).bridge.child.send(.kill)
      try (mortal === here ? there : here).kill()
    }

    struct Stuck: Error, CustomStringConvertible { let description: String }

    func stop() {
      for subscription in subscriptions { subscription.stop() }
    }

    func check(_ place: String) {
      let wanted = (0..<count).map { Handed($0 + 1, 1, marked: false) }
      #expect(heard.all == wanted, "\(place)")
      #expect(outcomes.all == wanted.map { _ in .delivered }, "\(place)")
    }
  }

  private let isLong = TestRun.isLong

  /// A life that ends before its fault has met all calls of its work; a few of them in a row are
  /// the end of the work.
  private static let enough = 8

  @Test(arguments: Side.allCases) func whereverTheBridgeIsKilled(_ side: Side) throws {
    guard let server = try TestServer.start(for: "deaths of bridges") else { return }
    let scene = try Scene(server, side)
    let step = isLong ? 1 : 9
    var point = isLong ? 1 : 1 + Int(TestRun.seed % 9)
    var (kills, whole) = (0, 0)
    let end = Instant.now + (isLong ? .seconds(1200) : .seconds(11))
    while whole < Self.enough, Instant.now < end {
      try scene.send()
      let (bridge, _) = try scene.live("any@\(point):before:kill", point)
      whole = bridge.hasEnded ? 0 : whole + 1
      if !bridge.hasEnded { try? bridge.child.send(.kill) }
      let outcome = try bridge.outcome()
      #expect(outcome.status == .signalled(9), "call \(point): \(outcome.errors)")
      if whole == 0 { kills += 1 }
      point += step
    }
    #expect(kills > 10 && (whole == Self.enough || !isLong))
    try scene.finish()
    scene.check("\(side), \(kills) kills")
    print("\(side): \(kills) kills up to call \(point), \(scene.count) messages")
    scene.stop()
  }

  @Test(arguments: Side.allCases) func whateverFails(_ side: Side) throws {
    guard let server = try TestServer.start(for: "failures of bridges") else { return }
    var random = SeededRandom(seed: TestRun.seed)
    let scene = try Scene(server, side)
    let step = isLong ? 1 : 29
    var point = isLong ? 1 : 1 + Int(TestRun.seed % 29)
    var (failed, ended, whole) = (0, 0, 0)
    let end = Instant.now + (isLong ? .seconds(3000) : .seconds(11))
    while whole < Self.enough, Instant.now < end {
      // EACCES never passes: who may not enter a sender's directory settles without an outcome.
      let kind = ["ENOSPC", "EIO", "EMFILE", "EROFS"].randomElement(using: &random)!
      try scene.send()
      let place = "call \(point): \(kind), seed \(TestRun.seed)"
      let (bridge, isReached) = try scene.live("any@\(point):before:fail=\(kind)", point)
      if bridge.hasEnded { ended += 1 } else { try? bridge.child.send(.kill) }
      let outcome = try bridge.outcome()
      // It may end with an error, and must not crash.
      #expect(
        [.exited(70), .signalled(9)].contains(outcome.status),
        "\(place): \(outcome.status) \(outcome.errors)")
      whole = isReached ? 0 : whole + 1
      failed += 1
      point += step
    }
    try scene.finish()
    scene.check("\(side), seed \(TestRun.seed)")
    print("\(side): \(failed) failures up to call \(point), \(ended) ends")
    scene.stop()
  }
}

/// A message as its receiver got it.
private struct Handed: Equatable, Sendable {
  let number: Int
  let attempt: Int
  let isMarked: Bool

  init(_ number: Int, _ attempt: Int, marked: Bool) {
    (self.number, self.attempt, isMarked) = (number, attempt, marked)
  }
}
