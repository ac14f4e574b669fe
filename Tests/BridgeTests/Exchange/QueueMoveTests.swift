import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The home of a queue moves, is lost, or is two machines, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct QueueMoveTests {
  private let wanted = SendOptions(wantsOutcome: true)

  private func checkDelivered(_ sent: [Sent], _ scene: QueueScene) throws {
    for one in sent {
      let end = one.waitForEnd(until: .now + .seconds(90))
      guard end == .delivered else {
        Issue.record("\(one.id): \(String(describing: end)) \(try scene.report())")
        return
      }
    }
  }

  /// Programs of three machines send and work on, while the home moves away and back.
  @Test func jobsFollowAMovedHome() throws {
    guard let scene = try QueueScene.start(3) else { return }
    let members = try (0..<3).map { try scene.machines[$0].container.join(as: "al\($0)") }
    var sent: [Sent] = []
    var number = 0
    func send(_ count: Int) throws {
      for _ in 0..<count {
        number += 1
        sent.append(
          try members[number % 3].queue("jobs", of: Int.self).send(number, wanted))
      }
    }
    try send(30)
    for machine in 0..<3 { try scene.work(machine, concurrency: 2, rest: 50) }
    let elsewhere = try scene.name(on: 1, to: 2, isAccepted: false)
    #expect(elsewhere.status != .exited(0) && elsewhere.errors.contains("not its home"))
    for (former, heir) in [(0, 1), (1, 2), (2, 0)] {
      try scene.name(on: former, to: heir)
      try send(15)
      try scene.waitUntil(heir, states: "queue 'jobs': home this machine")
      let home = try scene.identity(of: heir)
      for other in 0..<3 where other != heir {
        try scene.waitUntil(other, states: "queue 'jobs': home \(home)")
      }
      try send(15)
    }
    try checkDelivered(sent, scene)
    try scene.settled()
    #expect(try scene.handled() == Set(1...number))
    try scene.checkMarks()
    withExtendedLifetime(members) {}
  }

  /// Jobs that wait at the former home go to the new one, whichever machine has sent them.
  @Test func waitingJobsFollowAMovedHome() throws {
    guard let scene = try QueueScene.start(3) else { return }
    let members = try (0..<3).map { try scene.machines[$0].container.join(as: "al\($0)") }
    let sent = try (0..<3).map {
      try members[$0].queue("jobs", of: Int.self).send($0 + 1, wanted)
    }
    for number in 0..<3 { try members[number].queue("jobs", of: Int.self).send(number + 4) }
    try eventually("all wait at the home", within: .seconds(60)) {
      try scene.queue.messages.count == 6
    }
    try scene.name(on: 0, to: 1)
    try scene.waitUntil(1, states: "queue 'jobs': home this machine")
    try scene.work(1)
    try checkDelivered(sent, scene)
    try scene.settled()
    #expect(try scene.handled() == Set(1...6))
    try scene.checkMarks()
    withExtendedLifetime(members) {}
  }

  /// The bridges of the former home and of the new one are killed again and again.
  @Test func noJobIsLostWhileTheHomeMoves() throws {
    guard let scene = try QueueScene.start(3) else { return }
    var random = SeededRandom(seed: TestRun.seed)
    let members = try (0..<3).map { try scene.machines[$0].container.join(as: "al\($0)") }
    for machine in 0..<3 { try scene.work(machine, concurrency: 2, rest: 20) }
    var sent: [Sent] = []
    var home = 0
    for number in 1...(TestRun.hasTime || TestRun.isLong ? 12 : 3) {
      let heir = (home + Int.random(in: 1...2, using: &random)) % 3
      try scene.name(on: home, to: heir)
      for job in 0..<20 {
        sent.append(
          try members[job % 3].queue("jobs", of: Int.self).send(100 * number + job, wanted))
      }
      for _ in 0..<3 {
        let pause = Duration.milliseconds(Int.random(in: 200...1500, using: &random))
        let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
        let machine = [home, heir, heir][Int.random(in: 0..<3, using: &random)]
        try scene.killBridge(machine)
        try scene.machines[machine].start()
      }
      try scene.waitUntil(heir, states: "queue 'jobs': home this machine")
      home = heir
    }
    try checkDelivered(sent, scene)
    try scene.settled()
    #expect(try scene.handled().count == sent.count, "seed \(TestRun.seed)")
    try scene.checkMarks("seed \(TestRun.seed)")
    withExtendedLifetime(members) {}
  }

  /// Workers that have begun before the queue was named, at its home or elsewhere, go on.
  @Test func workersFollowAQueueThatIsNamed() throws {
    guard let scene = try QueueScene.start(2, isNamed: false) else { return }
    try scene.work(1, concurrency: 2)
    let own = try scene.machines[1].container.join(as: "al").queue("jobs", of: Int.self)
      .send(1, wanted)
    #expect(own.waitForEnd(until: .now + .seconds(60)) == .delivered)
    try scene.name(on: 0)
    try eventually("the queue is known", within: .seconds(60)) { try scene.isAway(1) }
    let sent = try scene.machines[0].container.join(as: "eve").queue("jobs", of: Int.self)
      .send(2, wanted)
    try checkDelivered([sent], scene)
    let lines = [["1", "1", "false"], ["1", "done"], ["2", "1", "false"], ["2", "done"]]
    #expect(throws: Never.self) {
      try eventually("the same worker has handled both", within: .seconds(60)) {
        try scene.lines(of: 1) == lines
      }
    }
  }

  /// A lost home is given up, and the queue is named on another machine.
  @Test func theQueueOfALostHomeIsNamedElsewhere() throws {
    guard let scene = try QueueScene.start(3) else { return }
    for machine in 1..<3 { try scene.work(machine, concurrency: 2) }
    // The first machine is the one that asks the servers: the last one is lost.
    try scene.name(on: 0, to: 2)
    try scene.waitUntil(2, states: "queue 'jobs': home this machine")
    let home = try scene.identity(of: 2)
    for other in 0..<2 { try scene.waitUntil(other, states: "queue 'jobs': home \(home)") }
    let member = try scene.machines[1].container.join(as: "eve")
    let first = try member.queue("jobs", of: Int.self).send(1, wanted)
    try checkDelivered([first], scene)
    try scene.kill(worker: 2)
    try scene.killBridge(2)
    let stranded = try member.queue("jobs", of: Int.self).send(2, wanted)
    try eventually("the message is in transit", within: .seconds(60)) {
      try stranded.state == .inTransit
    }
    try scene.evict(2)
    try eventually("the queue is named", within: .seconds(60)) {
      try scene.name(on: 0, isAccepted: false).status == .exited(0)
    }
    let last = try member.queue("jobs", of: Int.self).send(3, wanted)
    try checkDelivered([stranded, last], scene)
    #expect(try scene.lines(of: 1).contains { $0[0] == "3" })
    #expect(try scene.handled() == [1, 2, 3])
    // It may have reached the lost machine.
    #expect(
      try scene.lines().filter { $0.first == "2" && $0.count == 3 }.allSatisfy { $0[2] == "true" })
    try scene.checkMarks()
    withExtendedLifetime(member) {}
  }

  /// What is lent to a machine that is given up goes back at its deadline.
  @Test func jobsOfALostMachineGoBack() throws {
    guard let scene = try QueueScene.start(2) else { return }
    try scene.work(1, concurrency: 1, stopsAt: 1)
    try scene.queue.send(1)
    try eventually("it is handled elsewhere", within: .seconds(60)) { try scene.handled() == [1] }
    try scene.killBridge(1)
    try scene.evict(1)
    try scene.work(0)
    try eventually("it has come back", within: .seconds(60)) {
      try scene.lines(of: 0).contains { $0.count == 3 && $0[0] == "1" && $0[2] == "true" }
    }
    try scene.settled()
    try scene.checkMarks()
  }

  /// Two machines name the queue while they are cut off: both show it, and neither loses anything.
  @Test func twoHomesAreAConflict() throws {
    guard let scene = try QueueScene.start(3, isNamed: false) else { return }
    try scene.server.kill()
    for machine in 0..<2 {
      try scene.name(on: machine)
      try scene.work(machine)
    }
    try scene.server.restart()
    for machine in 0..<2 { try scene.waitUntil(machine, states: "its home is machine") }
    try scene.waitUntil(2, states: "the queue has more than one home")
    let members = try (0..<3).map { try scene.machines[$0].container.join(as: "al\($0)") }
    let sent = try (0..<3).map {
      try members[$0].queue("jobs", of: Int.self).send($0 + 1, wanted)
    }
    try checkDelivered(sent, scene)
    for machine in 0..<2 {
      #expect(try scene.lines(of: machine).contains(["\(machine + 1)", "1", "false"]))
    }
    // An operator decides, by a move.
    try scene.name(on: 1, to: 0)
    try scene.waitUntil(0, states: "queue 'jobs': home this machine, 0 lent\n")
    let home = try scene.identity(of: 0)
    for other in 1..<3 { try scene.waitUntil(other, states: "queue 'jobs': home \(home)") }
    let later = try (0..<3).map {
      try members[$0].queue("jobs", of: Int.self).send($0 + 4, wanted)
    }
    try checkDelivered(later, scene)
    #expect(try scene.handled() == Set(1...6))
    try scene.checkMarks()
    withExtendedLifetime(members) {}
  }

  /// Of two homes, one gives the queue to the other: a third machine follows.
  ///
  /// The other one states the queue all the time, so the statement is no sign of the move.
  @Test func aThirdMachineFollowsTheMoveThatEndsAConflict() throws {
    guard let scene = try QueueScene.start(3, isNamed: false) else { return }
    try scene.killBridge(0)
    try scene.name(on: 1)
    try scene.waitUntil(2, states: "queue 'jobs': home \(scene.identity(of: 1))")
    try scene.name(on: 0)
    try scene.machines[0].start()
    for machine in 0..<2 {
      try scene.waitUntil(machine, states: "its home is machine")
      try scene.work(machine)
    }
    try scene.name(on: 1, to: 0)
    try scene.waitUntil(2, states: "queue 'jobs': home \(scene.identity(of: 0))")
    let member = try scene.machines[2].container.join(as: "sender")
    try checkDelivered([try member.queue("jobs", of: Int.self).send(1, wanted)], scene)
    withExtendedLifetime(member) {}
  }

  /// Jobs of one key are handled one after the other, whichever machine handles each of them.
  @Test func keysKeepTheirOrderAcrossMachines() throws {
    guard let scene = try QueueScene.start(3) else { return }
    var random = SeededRandom(seed: TestRun.seed)
    let (count, keys) = (TestRun.hasTime || TestRun.isLong ? 600 : 120, 6)
    for number in 1...count {
      var options = SendOptions()
      options.orderingKey = "key \(number % keys)"
      try scene.queue.send(number, options)
    }
    try scene.folder.write("", to: "log")
    // Each worker dies with one of the jobs in hand, before it acknowledges the job.
    for machine in 0..<3 {
      try scene.work(
        machine, concurrency: 3, killsAt: 20 + machine, rest: machine == 0 ? 200 : 20, log: "log")
    }
    func log() throws -> [[String]] {
      try scene.folder.read("log").split(separator: "\n").map {
        $0.split(separator: " ").map(String.init)
      }
    }
    func begun() throws -> Int { Set(try log().filter { $0.count == 3 }.map { $0[0] }).count }
    func replaceDead() throws {
      for machine in 0..<3 where scene.workers[machine]?.hasEnded == true {
        try scene.work(machine, concurrency: 3, rest: machine == 0 ? 200 : 20, log: "log")
      }
    }
    let end = Instant.now + .seconds(TestRun.isLong ? 900 : 120)
    while try begun() < count, Instant.now < end {
      try replaceDead()
      let pause = Duration.milliseconds(Int.random(in: 300...1500, using: &random))
      let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
      let machine = Int.random(in: 0..<3, using: &random)
      try scene.killBridge(machine)
      try scene.machines[machine].start()
    }
    try replaceDead()
    try scene.settled(within: .seconds(120))
    var (started, ended): (Set<Int>, Set<Int>) = ([], [])
    for line in try log() {
      guard let number = Int(line[0]) else { continue }
      if line.count == 2 {
        if line[1] == "ends" { ended.insert(number) }
      } else if started.insert(number).inserted, number > keys {
        let before = number - keys
        #expect(ended.contains(before), "\(number) before \(before), seed \(TestRun.seed)")
      }
    }
    #expect(started == Set(1...count))
  }
}
