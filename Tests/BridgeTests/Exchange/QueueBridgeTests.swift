import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A queue with workers on several machines, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct QueueBridgeTests {
  private func scene(_ count: Int = 2) throws -> QueueScene? { try QueueScene.start(count) }

  @Test func workersElsewhereHandleTheHomesMessages() throws {
    guard let scene = try scene() else { return }
    let al = try scene.machines[0].container.join(as: "al")
    let sent = try (1...20).map {
      try al.queue("jobs", of: Int.self).send($0, SendOptions(wantsOutcome: true))
    }
    try scene.work(1, concurrency: 4)
    for one in sent {
      let end = one.waitForEnd(until: .now + .seconds(60))
      #expect(end == .delivered)
    }
    let lines = try scene.lines().filter { $0.count == 3 }
    #expect(Set(lines) == Set((1...20).map { ["\($0)", "1", "false"] }) && lines.count == 20)
    // What a program sends elsewhere goes to the home, and may come back from there.
    let eve = try scene.machines[1].container.join(as: "eve")
    let away = try eve.queue("jobs", of: Int.self).send(21, SendOptions(wantsOutcome: true))
    let end = away.waitForEnd(until: .now + .seconds(60))
    #expect(end == .delivered)
    #expect(try scene.handled() == Set(1...21))
    try scene.settled()
    try eventually("the status shows the queue", within: .seconds(60)) {
      try scene.machines[0].status().contains("queue 'jobs': home this machine, 0 lent")
    }
    withExtendedLifetime((al, eve)) {}
  }

  @Test func aKilledWorkersMessageIsTheHomesAgain() throws {
    guard let scene = try scene() else { return }
    try scene.work(1, concurrency: 1, killsAt: 2)
    try scene.queue.send(contentsOf: [1, 2, 3])
    _ = try scene.workers[1]?.outcome(within: .seconds(60))
    try scene.work(0)
    try scene.settled()
    #expect(try scene.handled() == [1, 2, 3])
    #expect(try scene.lines().contains(["2", "2", "true"]))
    try scene.checkMarks()
  }

  /// A machine that is cut off has its message until the deadline.
  ///
  /// Its worker's program is told that the acknowledgement comes too late.
  @Test func whatACutOffMachineHasGoesBackAtItsDeadline() throws {
    guard let scene = try scene() else { return }
    try scene.work(1, concurrency: 1, stopsAt: 1)
    try scene.queue.send(1)
    try eventually("it is handled elsewhere", within: .seconds(60)) {
      try scene.handled() == [1]
    }
    let bridge = try #require(scene.machines[1].bridge)
    try bridge.child.send(.stop)
    try scene.work(0)
    try eventually("it has come back", within: .seconds(60)) {
      try scene.lines().contains(["1", "2", "true"])
    }
    try scene.settled()
    try bridge.child.send(.go)
    try eventually("the late end has arrived", within: .seconds(60)) {
      let away = try scene.machines[1].container.storage.existingMember("jobs", in: .queues)
      return try away?.away().contains(.receipts) { _ in true } == false
        && scene.claims(of: 1).isEmpty
    }
    try scene.workers[1]?.child.send(.go)
    try eventually("the worker is told", within: .seconds(60)) {
      try scene.lines(of: 1).count == 2
    }
    #expect(try scene.lines(of: 1).last == ["1", "superseded"])
    #expect(try scene.lines(of: 0).last == ["1", "done"])
    // The message has ended once, and nothing of it is left.
    try scene.settled()
    #expect(try scene.queue.deadLetters.isEmpty)
    try scene.checkMarks()
  }

  /// The home alone knows that it has given the message to another worker: its next heartbeat says
  /// so.
  @Test func theHomesStatementTakesAMessageAway() throws {
    guard let scene = try scene() else { return }
    try scene.work(1, concurrency: 1, stopsAt: 1)
    try scene.queue.send(1)
    try eventually("it is handled elsewhere", within: .seconds(60)) {
      try scene.handled() == [1]
    }
    try scene.work(0)
    // Claims of the home's bridge end with it.
    try scene.killBridge(0)
    try scene.machines[0].start()
    try eventually("it has come back", within: .seconds(60)) {
      try scene.lines(of: 0).contains(["1", "2", "true"])
    }
    try eventually("it is taken away", within: .seconds(60)) { try scene.claims(of: 1).isEmpty }
    try scene.workers[1]?.child.send(.go)
    try eventually("the worker is told", within: .seconds(60)) {
      try scene.lines(of: 1).count == 2
    }
    #expect(try scene.lines(of: 1).last == ["1", "superseded"])
    try scene.settled()
    try scene.checkMarks()
  }

  /// Bridges, workers and the server are killed and suspended at random, with workers on the home
  /// and on two other machines: each message is handled, and duplicates are marked.
  @Test func noJobIsLost() throws {
    guard let scene = try scene(3) else { return }
    var random = SeededRandom(seed: TestRun.seed)
    let isLong = TestRun.isLong || TestRun.hasTime
    let count = isLong ? 20_000 : 1500
    // The workers elsewhere take long enough to be killed with messages.
    let rest = [200, 30, 30]
    try scene.queue.send(contentsOf: Array(1...count))
    for machine in 0..<3 {
      try scene.work(machine, concurrency: machine == 0 ? 2 : 24, rest: rest[machine])
    }
    let began = Instant.now
    let end = began + .seconds(isLong ? 900 : 60)
    var (bridges, workers, servers, cuts) = (0, 0, 0, 0)
    // A message that dies with its worker too often becomes a dead letter, rightly.
    while try scene.handled().count < count, Instant.now < end,
      isLong || bridges + workers + servers < 20
    {
      let longest = isLong ? 1500 : 400
      let pause = Duration.milliseconds(Int.random(in: longest / 4...longest, using: &random))
      let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
      let machine = Int.random(in: 0..<3, using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0...2:
        bridges += 1
        try scene.killBridge(machine)
        try scene.machines[machine].start()
      case 3, 4, 5:
        workers += 1
        try scene.kill(worker: machine)
        try scene.work(machine, concurrency: machine == 0 ? 2 : 24, rest: rest[machine])
      case 6:
        servers += 1
        try scene.server.kill()
        try scene.server.restart()
      default:
        guard isLong else { continue }
        // Longer than a deadline.
        cuts += 1
        try scene.machines[machine].bridge?.child.send(.stop)
        let _: Void? = Monitor(()).wait(until: .now + .seconds(13)) { _ in nil }
        try scene.machines[machine].bridge?.child.send(.go)
      }
    }
    let seconds = (Instant.now - began) / .seconds(1)
    let place =
      "seed \(TestRun.seed): kills of \(bridges) bridges, \(workers) workers, \(servers) servers, "
      + "\(cuts) cuts"
    try scene.settled(within: .seconds(120))
    #expect(try scene.handled() == Set(1...count), "\(place)")
    #expect(try scene.queue.deadLetters.isEmpty, "\(place)")
    try scene.checkMarks(place)
    let attempts = try scene.lines().filter { $0.count == 3 }
    let repeated = attempts.count - count
    let shares = try (0..<3).map { machine in
      try scene.lines(of: machine).count { $0.count == 2 && $0[1] == "done" }
    }
    #expect(!shares.contains(0), "\(place): \(shares)")
    print("\(place); \(count) jobs in \(Int(seconds)) s by \(shares), \(repeated) repeated")
  }
}
