import TestSupport
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Machines with a queue, over a real server; the first machine is the home of the queue.
final class QueueScene {
  let server: TestServer
  let folder: TemporaryDirectory
  let machines: [BridgedMachine]
  var workers: [Running?]

  /// Nil, and a notice, where no server can be had.
  static func start(_ count: Int, isNamed: Bool = true) throws -> QueueScene? {
    guard let server = try TestServer.start(for: "queues between machines") else { return nil }
    return try QueueScene(server, count, isNamed: isNamed)
  }

  private init(_ server: TestServer, _ count: Int, isNamed: Bool) throws {
    self.server = server
    let folder = try TemporaryDirectory()
    self.folder = folder
    for machine in 0..<count { try folder.write("", to: "log\(machine)") }
    try BridgedMachine.setUp(server)
    machines = try (0..<count).map { try BridgedMachine("\(folder.path)/m\($0)", server) }
    workers = machines.map { _ in nil }
    if isNamed { try name(on: 0) }
    for machine in machines { try machine.start() }
    guard isNamed else { return }
    for machine in 1..<count {
      try eventually("the queue is known", within: .seconds(60)) { try isAway(machine) }
    }
  }

  /// Runs the command that names the queue, or moves its home.
  @discardableResult
  func name(on machine: Int, to heir: Int? = nil, isAccepted: Bool = true) throws -> ProcessOutcome
  {
    let to = try heir.map { ["--to", try identity(of: $0)] } ?? []
    let outcome = try run(
      Programs.built("wormhole"),
      ["--container", machines[machine].path, "bridge", "queue", "jobs"] + to)
    if isAccepted { try #require(outcome.status == .exited(0), "\(outcome.errors)") }
    return outcome
  }

  func identity(of machine: Int) throws -> String {
    try BridgeStatus.identity(of: machines[machine].container).machine
  }

  func evict(_ machine: Int) throws {
    var arguments = machines[0].arguments()
    arguments.insert(contentsOf: ["evict", try identity(of: machine)], at: 3)
    let outcome = try Running(Programs.built("wormhole"), arguments).outcome(within: .seconds(90))
    try #require(outcome.status == .exited(0), "\(outcome.errors)")
  }

  /// Waits until a machine's status has the text.
  func waitUntil(_ machine: Int, states text: String) throws {
    do {
      try eventually("the status has '\(text)'", within: .seconds(60)) {
        try machines[machine].status().contains(text)
      }
    } catch {
      Issue.record("\(error): \(try report())")
    }
  }

  /// The names of the messages that the workers of a machine have of another machine's queue.
  func claims(of machine: Int) throws -> [String] {
    guard let home = try machines[machine].container.storage.existingMember("jobs", in: .queues)
    else { return [] }
    var found: [String] = []
    for worker in try home.away().workers() {
      try worker.list(.claimed) { found.append(String(cString: $0)) }
    }
    return found
  }

  /// Whether a machine knows the queue as another machine's.
  func isAway(_ machine: Int) throws -> Bool {
    let home = try machines[machine].container.storage.existingMember("jobs", in: .queues)
    return try home?.elsewhere?.isSettling == false
  }

  func work(
    _ machine: Int, concurrency: Int = 2, killsAt: Int? = nil, stopsAt: Int? = nil, rest: Int = 0,
    log: String? = nil
  ) throws {
    let worker = try Running(
      .work(
        machines[machine].path, "jobs", log: folder.path + "/" + (log ?? "log\(machine)"),
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
      try eventually("all is settled", within: time) {
        try machines.allSatisfy {
          try $0.container.queue("jobs", of: Int.self).messages.isEmpty
        }
      }
    } catch {
      Issue.record("\(error): \(try report())")
    }
  }

  deinit {
    for worker in workers { try? worker?.child.send(.kill) }
    for machine in machines { try? machine.kill() }
  }
}
