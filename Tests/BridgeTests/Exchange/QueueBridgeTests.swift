import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A queue with workers on several machines, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct QueueBridgeTests {
  /// The first machine is the home of the queue.
  private final class Scene {
    let server: TestServer
    let folder: TemporaryDirectory
    let machines: [BridgedMachine]
    var workers: [Running?]

    init(_ server: TestServer, _ count: Int) throws {
      self.server = server
      let folder = try TemporaryDirectory()
      self.folder = folder
      for machine in 0..<count { try folder.write("", to: "log\(machine)") }
      try BridgedMachine.setUp(server)
      machines = try (0..<count).map { try BridgedMachine("\(folder.path)/m\($0)", server) }
      workers = machines.map { _ in nil }
      let outcome = try run(
        Programs.built("wormhole"),
        ["--container", machines[0].path, "bridge", "queue", "jobs"])
      try #require(outcome.status == .exited(0), "\(outcome.errors)")
      for machine in machines { try machine.start() }
      for machine in machines.dropFirst() {
        try eventually("the queue is known", within: .seconds(60)) { try isKnown(machine) }
      }
    }

    private func isKnown(_ machine: BridgedMachine) throws -> Bool {
      let home = try machine.container.storage.existingMember("jobs", in: .queues)
      return try home?.elsewhere != nil
    }

    func work(
      _ machine: Int, concurrency: Int = 2, killsAt: Int? = nil, stopsAt: Int? = nil, rest: Int = 0
    ) throws {
      let worker = try Running(
        .work(
          machines[machine].path, "jobs", log: folder.path + "/log\(machine)",
          concurrency: concurrency, deadline: 30_000, killsAt: killsAt, stopsAt: stopsAt, rest: rest
        ))
      workers[machine] = worker
      try eventually("it works", within: .seconds(60)) { try worker.output.contains("working") }
    }

    func kill(worker machine: Int) throws {
      try workers[machine]?.child.send(.kill)
      _ = try workers[machine]?.outcome()
    }

    func killBridge(_ machine: Int) throws {
      try machines[machine].kill()
      _ = try machines[machine].bridge?.outcome()
    }

    var queue: Queue<Int> { machines[0].container.queue("jobs") }

    func lines() throws -> [[String]] { try machines.indices.flatMap { try lines(of: $0) } }

    func lines(of machine: Int) throws -> [[String]] {
      try folder.read("log\(machine)").split(separator: "\n").map {
        $0.split(separator: " ").map(String.init)
      }
    }

    /// The numbers that a worker has begun with.
    func handled() throws -> Set<Int> {
      Set(try lines().filter { $0.count == 3 }.compactMap { Int($0[0]) })
    }

    /// Fails the test if a redelivery is not marked.
    func checkMarks(_ place: String = "") throws {
      var unmarked: Set<String> = []
      for line in try lines() where line.count == 3 && line[2] != "true" {
        let isFirst = unmarked.insert(line[0]).inserted
        if !isFirst { Issue.record("\(line) is not marked \(place)") }
      }
    }

    func report() throws -> String {
      try machines.map { try $0.status() + ($0.bridge?.errors ?? "") }.joined()
    }

    func settled(within time: Duration = .seconds(60)) throws {
      do {
        try eventually("all is settled", within: time) { try queue.messages.isEmpty }
      } catch {
        Issue.record("\(error): \(try report())")
      }
    }

    deinit {
      for worker in workers { try? worker?.child.send(.kill) }
      for machine in machines { try? machine.kill() }
    }
  }

  private func scene(_ count: Int = 2) throws -> Scene? {
    guard let server = try TestServer.start(for: "queues between machines") else { return nil }
    return try Scene(server, count)
  }

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

  /// A machine that is cut off has its message until the deadline, and its end comes too late.
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
    try scene.workers[1]?.child.send(.go)
    try eventually("the late end has arrived", within: .seconds(60)) {
      let away = try scene.machines[1].container.storage.existingMember("jobs", in: .queues)
      return try scene.lines().filter { $0 == ["1", "done"] }.count == 2
        && away?.away().contains(.receipts) { _ in true } == false
    }
    // The message has ended once, and nothing of it is left.
    try scene.settled()
    #expect(try scene.queue.deadLetters.isEmpty)
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
    while try scene.handled().count < count, Instant.now < end {
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
