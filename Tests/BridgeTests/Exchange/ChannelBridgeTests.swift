import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Channels with a home on one machine and copies on two others, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct ChannelBridgeTests {
  private struct Office: Codable, Equatable, Sendable {
    var left: Int
    var sold: [String] = []
  }

  /// The home's bridge is a process with faults.
  private final class Scene {
    let server: TestServer
    let folder: TemporaryDirectory
    let machines: [BridgedMachine]
    private(set) var home: Running?

    init(_ server: TestServer) throws {
      self.server = server
      folder = try TemporaryDirectory()
      try BridgedMachine.setUp(server)
      let path = folder.path
      machines = try (0..<3).map { try BridgedMachine("\(path)/m\($0)", server) }
    }

    func startHome(_ faults: String = "") throws {
      let home = try Running(
        .bridge(
          machines[0].path, group: "g", address: server.address, tokenFile: server.tokenFile),
        environment: ["WORMHOLE_FAULTS=\(faults)"])
      self.home = home
    }

    func killHome() throws {
      if home?.hasEnded == false { try? home?.child.send(.kill) }
      _ = try home?.outcome()
    }

    func nameChannel() throws {
      let outcome = try run(
        Programs.built("wormhole"),
        ["--container", machines[0].path, "bridge", "channel", "seats"])
      try #require(outcome.status == .exited(0), "\(outcome.errors)")
    }
  }

  private func scene(_ tickets: Int) throws -> Scene? {
    guard let server = try TestServer.start(for: "channels between machines") else { return nil }
    let scene = try Scene(server)
    try scene.machines[0].container.channel("seats").put(Office(left: tickets))
    try scene.nameChannel()
    try scene.startHome()
    for machine in scene.machines.dropFirst() { try machine.start() }
    for machine in scene.machines.dropFirst() {
      try eventually("the copy is there", within: .seconds(60)) {
        try machine.container.channel("seats", of: Office.self).value?.left == tickets
      }
    }
    return scene
  }

  /// A seller, which sells until no seat is left.
  private struct Seller: Sendable {
    let name: String
    let path: String
    /// How long the seller rests after a sale, so that the home does not sell everything at once.
    let rest: Duration
    let sold = Heard<String>()
    /// Sales of which the seller does not know whether they were made.
    let open = Heard<String>()

    func run() throws {
      var options = Options()
      options.timeout = .seconds(60)
      let seats = try SharedContainer(directory: path, options: options)
        .channel("seats", of: Office.self)
      var number = 0
      while true {
        let ticket = "\(name)-\(number)"
        var isSold = false
        do {
          _ = try seats.update { office in
            isSold = false
            guard var next = office, next.left > 0 else { return }
            next.left -= 1
            next.sold.append(ticket)
            (office, isSold) = (next, true)
          }
          guard isSold else { return }
          sold.add(ticket)
          number += 1
          let _: Void? = Monitor(()).wait(until: .now + rest) { _ in nil }
        } catch let error as WormholeError where error.code == .unreachable {
          let _: Void? = Monitor(()).wait(until: .now + .milliseconds(20)) { _ in nil }
        } catch let error as WormholeError where error.code == .timedOut {
          open.add(ticket)
          number += 1
        }
      }
    }
  }

  @Test func noTicketIsSoldTwice() throws {
    let tickets = TestRun.isLong || TestRun.hasTime ? 400 : 40
    guard let scene = try scene(tickets) else { return }
    var random = SeededRandom(seed: TestRun.seed)
    let sellers = scene.machines.enumerated().flatMap { number, machine in
      ["a", "b"].map {
        Seller(
          name: "\(number)\($0)", path: machine.path,
          rest: number == 0 ? .seconds(3) : .zero)
      }
    }
    let failures = Heard<String>()
    try scene.killHome()
    let ended = Monitor(0)
    let threads = try sellers.map { seller in
      try WormholeSyscalls.Thread("seller") {
        do { try seller.run() } catch { failures.add("\(seller.name): \(error)") }
        ended.signal { $0 += 1 }
      }
    }
    var (kills, losses) = (0, 0)
    while ended.withLock({ $0 }) < sellers.count {
      // After the change, and before the reply.
      let change = Int.random(in: 1...4, using: &random)
      try scene.startHome("rename~seats/value.plist@\(change):after:kill")
      let end = Instant.now + .seconds(60)
      while scene.home?.hasEnded == false, ended.withLock({ $0 }) < sellers.count,
        Instant.now < end
      {
        let _: Void? = ended.wait(until: .now + .milliseconds(20)) { _ in nil }
      }
      if scene.home?.hasEnded == true { kills += 1 }
      try scene.killHome()
      // The server dies, too, and nothing is acknowledged for a time.
      if kills % 4 == 3, ended.withLock({ $0 }) < sellers.count {
        try scene.server.server.kill()
        try scene.server.server.start()
        losses += 1
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.all == [])
    let office = try scene.machines[0].container.channel("seats", of: Office.self).value
    let sold = office?.sold ?? []
    let place = "seed \(TestRun.seed), \(kills) kills, \(losses) of the server"
    #expect(office?.left == 0 && sold.count == tickets, "\(place)")
    #expect(Set(sold).count == tickets, "\(place)")
    let known = sellers.flatMap(\.sold.all)
    #expect(Set(known).count == known.count && Set(known).isSubset(of: sold), "\(place)")
    let open = Set(sellers.flatMap(\.open.all))
    #expect(Set(sold).subtracting(known).isSubset(of: open), "\(place)")
    let shares = scene.machines.indices.map { number in
      known.filter { $0.hasPrefix("\(number)") }.count
    }
    #expect(kills > 0 && !shares.contains(0), "\(place): \(shares)")
    print("\(place): tickets sold by the machines: \(shares), open: \(open.count)")
  }

  @Test func salesElsewhereNeedTheHomesBridge() throws {
    guard let scene = try scene(10) else { return }
    let away = scene.machines[1].container.channel("seats", of: Office.self)
    try sell(away)
    #expect(try scene.machines[0].container.channel("seats", of: Office.self).value?.left == 9)
    try eventually("the copy follows", within: .seconds(60)) { try away.value?.left == 9 }
    try scene.killHome()
    var code: WormholeError.Code?
    try eventually("it is unreachable", within: .seconds(60)) {
      do {
        _ = try away.update { $0?.left -= 1 }
      } catch let error as WormholeError {
        code = error.code
      }
      return code == .unreachable
    }
    // The home's own sales go on.
    let home = scene.machines[0].container.channel("seats", of: Office.self)
    let before = try #require(try home.value?.left)
    _ = try home.update { $0?.left -= 1 }
    let age = try #require(try away.latest?.age)
    #expect(age > .zero)
    try scene.startHome()
    try eventually("the copy follows again", within: .seconds(60)) {
      try away.value?.left == before - 1
    }
    try eventually("the home has confirmed it", within: .seconds(60)) {
      try away.latest?.age.map { $0 < .seconds(3) } == true
    }
    try scene.killHome()
  }

  /// The name of a machine, from its bridge's statement.
  private func name(of machine: BridgedMachine) throws -> String {
    let status = try JSONPropertyList.decode(Array(machine.status(["--json"]).utf8))
    return try #require(status["machine"]?.stringValue)
  }

  /// Sells one ticket, as soon as the home can be reached.
  private func sell(_ seats: Channel<Office>) throws {
    try eventually("a ticket is sold", within: .seconds(60)) {
      do {
        _ = try seats.update { $0?.left -= 1 }
        return true
      } catch let error as WormholeError where error.code == .unreachable {
        return false
      }
    }
  }

  private func move(_ machine: BridgedMachine, to: String) throws {
    let outcome = try run(
      Programs.built("wormhole"),
      ["--container", machine.path, "bridge", "channel", "seats", "--to", to])
    try #require(outcome.status == .exited(0), "\(outcome.errors)")
  }

  @Test func aHomeIsMovedByHand() throws {
    guard let scene = try scene(10) else { return }
    let seats = scene.machines.map { $0.container.channel("seats", of: Office.self) }
    try sell(seats[1])
    try move(scene.machines[0], to: name(of: scene.machines[1]))
    try eventually("the new home has the channel", within: .seconds(60)) {
      try seats[1].metadata.map { $0.home == nil } == true && seats[1].value?.left == 9
    }
    for machine in [2, 0] { try sell(seats[machine]) }
    #expect(try seats[1].value?.left == 7)
    // The new home sells offline.
    try scene.machines[1].kill()
    _ = try seats[1].update { $0?.left -= 1 }
    #expect(try seats[1].value?.left == 6)
    try scene.killHome()
  }

  /// Both bridges are killed at each file that they write for the move.
  @Test func aMoveGoesOnAfterKills() throws {
    guard let scene = try scene(10) else { return }
    let seats = scene.machines.map { $0.container.channel("seats", of: Office.self) }
    let heir = try name(of: scene.machines[1])
    let copied = "rename~seats/value.plist@1:after:kill"
    let (forgotten, listed) = ("unlink~seats.plist@1:after:kill", "rename~seats.plist@1:after:kill")
    try scene.killHome()
    try scene.startHome(copied)
    try scene.machines[1].kill()
    var heirs = try scene.machines[1].startBridge(environment: ["WORMHOLE_FAULTS=\(listed)"])
    try move(scene.machines[0], to: heir)
    for faults in [forgotten, ""] {
      try eventually("the home's bridge is killed", within: .seconds(60)) {
        scene.home?.hasEnded == true
      }
      try scene.killHome()
      try scene.startHome(faults)
    }
    for faults in [copied, ""] {
      try eventually("the new home's bridge is killed", within: .seconds(60)) { heirs.hasEnded }
      _ = try heirs.outcome()
      heirs = try scene.machines[1].startBridge(environment: ["WORMHOLE_FAULTS=\(faults)"])
    }
    try eventually("the new home has the channel", within: .seconds(60)) {
      try seats[1].metadata.map { $0.home == nil } == true && seats[1].value?.left == 10
    }
    try sell(seats[0])
    #expect(try seats[1].value?.left == 9)
    try heirs.child.send(.kill)
    _ = try heirs.outcome()
    try scene.killHome()
  }

  /// The new home tries again what has failed.
  @Test func aMoveGoesOnAfterAnError() throws {
    guard let scene = try scene(10) else { return }
    let seats = scene.machines.map { $0.container.channel("seats", of: Office.self) }
    try scene.machines[1].kill()
    let heir = try scene.machines[1].startBridge(
      environment: ["WORMHOLE_FAULTS=rename~seats.plist@1:before:fail=EIO"])
    try move(scene.machines[0], to: name(of: scene.machines[1]))
    try eventually("the new home has the channel", within: .seconds(60)) {
      try seats[1].metadata.map { $0.home == nil } == true && seats[1].value?.left == 10
    }
    try sell(seats[0])
    #expect(try seats[1].value?.left == 9)
    try heir.child.send(.kill)
    _ = try heir.outcome()
    try scene.killHome()
  }

  /// The home keeps a channel that it cannot hand over, and goes on selling.
  @Test func whatCannotBeCarriedStaysAtHome() throws {
    guard let scene = try scene(10) else { return }
    let (home, away) = (scene.machines[0], scene.machines[1])
    let seats = home.container.channel("seats", of: Office.self)
    let copy = away.container.channel("seats", of: Office.self)
    let heir = try name(of: away)
    try seats.put(Office(left: 9, sold: [String(repeating: "x", count: 2_000_000)]))
    var reason = ""
    try eventually("the home refuses", within: .seconds(60)) {
      do {
        try sell(copy)
      } catch let error as WormholeError where error.code == .refused {
        reason = error.reason
      }
      return reason != ""
    }
    #expect(reason.contains("too large"), "\(reason)")
    try move(home, to: heir)
    try eventually("the home is kept", within: .seconds(60)) {
      try home.status().contains("is not moved: its value has more bytes")
    }
    try seats.put(Office(left: 8))
    try eventually("the copy follows", within: .seconds(60)) { try copy.value?.left == 8 }
    try move(home, to: "00000000000000ff")
    try eventually("the unknown machine is reported", within: .seconds(60)) {
      try home.status().contains("00000000000000ff, cannot be reached")
    }
    try sell(copy)
    try move(home, to: heir)
    try eventually("the new home has the channel", within: .seconds(60)) {
      try copy.metadata.map { $0.home == nil } == true && copy.value?.left == 7
    }
    try scene.killHome()
  }

  @Test func theChannelOfALostHomeIsTakenByHand() throws {
    guard let scene = try scene(10) else { return }
    let seats = scene.machines.map { $0.container.channel("seats", of: Office.self) }
    let lost = try name(of: scene.machines[0])
    try scene.killHome()
    let eviction = try run(
      Programs.built("wormhole"),
      [
        "bridge", "evict", lost, "--shared-as", "g", "--nats", scene.server.address,
        "--token-file", scene.server.tokenFile,
      ])
    #expect(eviction.status == .exited(0), "\(eviction.errors)")
    try move(scene.machines[1], to: name(of: scene.machines[1]))
    try eventually("the new home sells", within: .seconds(60)) {
      try seats[1].metadata.map { $0.home == nil } == true
    }
    _ = try seats[1].update { $0?.left -= 1 }
    try eventually("the others see it", within: .seconds(60)) { try seats[2].value?.left == 9 }
    try sell(seats[2])
    #expect(try seats[1].value?.left == 8)
  }
}
