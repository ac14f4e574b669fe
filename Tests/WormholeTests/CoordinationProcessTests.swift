import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The scene of Technical Note TN2408, with real processes: the holder of an access is suspended or
/// killed, and the other processes continue.
@Suite(.blocking, .notSanitized("many processes at once"))
struct CoordinationProcessTests {
  private let scene: FileScene
  private let isLong = TestRun.isLong

  init() throws { scene = try FileScene(lease: .milliseconds(50)) }

  /// Longer than any process waits for a suspended holder.
  private let bound = Duration.milliseconds(50 + 250)

  @Test(arguments: [PeerJob.Coordination.read, .write, .replace])
  func aStoppedHolderIsNamedToThoseWhoWait(_ kind: PeerJob.Coordination) throws {
    let peer = try scene.stopped(kind, "a")
    let time = try Bystander.leastOfThree(within: bound) {
      try Bystander.time {
        let error = try failure { try scene.another().write(scene.path("a")) { _ in } }
        #expect(error.code == .stopped)
        #expect(
          error.reason.contains("'TestPeer' (process \(peer.child.process), stopped)"), "\(error)")
      }
    }
    #expect(time < bound)
    #expect(try scene.isFree(.reading(scene.path("b"))))
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\ndone\n")
    #expect(try scene.leftovers() == [])
  }

  @Test func whoeverAskedGoesPastAStoppedOneWhichChangesNothingThen() throws {
    var (scene, stopped) = (scene, Running?.none)
    let time = try Bystander.leastOfThree(within: bound) {
      scene = try FileScene(lease: .milliseconds(50))
      try scene.folder.write("old", to: "files/a")
      stopped = try scene.stopped(.replace, "a")
      return try Bystander.time {
        try scene.another().replace(scene.path("a"), takeOverAfter: .milliseconds(50)) { new, _ in
          try Descriptor.open(path: new, [.writeOnly, .create], mode: 0o600).write("new")
          // This thread's own access blocks a read with another purpose. The suspended access still
          // blocks accesses that have not asked to take over.
          let error = try failure { try scene.another("x").read(scene.path("a")) { _ in } }
          #expect(error.code == .nested)
        }
      }
    }
    #expect(time < bound)
    let peer = try #require(stopped)
    let error = try failure { try scene.another().write(scene.path("a")) { _ in } }
    #expect(error.code == .stopped)
    #expect(try scene.read("a") == "new")
    try peer.child.send(.go)
    // The peer's hidden directory is gone, so the peer cannot even make the new file.
    let outcome = try peer.outcome()
    #expect(outcome.status != .exited(0))
    #expect(try scene.read("a") == "new")
    #expect(try scene.isFree(.writing(scene.path("a"))))
    #expect(try scene.leftovers() == [])
  }

  /// The process that took over has seen the replaced file.
  @Test func whoeverIsTakenOverOnceItHasReplacedIsToldThatItHas() throws {
    try scene.folder.write("old", to: "files/a")
    let peer = try scene.peer(
      .replace, scene.path("a"), .write("new"),
      environment: ["WORMHOLE_FAULTS=unlink~running:before:stop"])
    try peer.waitUntilStopped()
    let text = try scene.another().read(scene.path("a"), takeOverAfter: .milliseconds(50)) { _ in
      try scene.read("a")
    }
    #expect(text == "new")
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\ndone\n")
    #expect(try scene.leftovers() == [])
  }

  /// On FUSE, a lock on a file is invisible through a link to the file.
  @Test func throughFuseWhoeverIsInsideKeepsOthersOut() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "accesses through FUSE") else { return }
    for name in ["groups", "files"] {
      try Descriptor.makeDirectory(path: "\(disk.path)/\(name)", mode: 0o700)
    }
    let (groups, path) = ("\(disk.path)/groups", "\(disk.path)/files/a")
    let peer = try Running(
      .coordinate(.write, path, .linger, takeOverAfterMilliseconds: nil),
      environment: ["WORMHOLE_ROOT=\(groups)"])
    try eventually("it is inside") { try peer.output == "inside\n" }
    let other = Coordinator(Arbiters(.testing(lease: .seconds(10)), root: groups))
    let error = try failure { try other.write(path, within: .milliseconds(200)) { _ in } }
    #expect(error.code == .timedOut)
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try other.write(path) { _ in }
  }

  @Test func anOvertakenWriterHearsOfIt() throws {
    let peer = try scene.stopped(.write, "a")
    try scene.another().write(scene.path("a"), takeOverAfter: .milliseconds(50)) { _ in }
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\nsuperseded\n")
    #expect(try scene.isFree(.writing(scene.path("a"))))
  }

  @Test func aStoppedReaderAmongReadersIsInNobodysWayButAWriters() throws {
    let peer = try scene.stopped(.read, "a")
    #expect(try scene.isFree(.reading(scene.path("a"))))
    let error = try failure { try scene.another().write(scene.path("a")) { _ in } }
    #expect(error.code == .stopped)
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try scene.another().write(scene.path("a")) { _ in }
  }

  @Test(arguments: [PeerJob.Coordination.read, .write, .replace]) func aKilledHolderIsGoneAtOnce(
    _ kind: PeerJob.Coordination
  )
    throws
  {
    // The holder may be starved for a moment, and is not suspended.
    let (lease, bound) = (Duration.seconds(10), Duration.milliseconds(500))
    let time = try Bystander.leastOfThree(within: bound) {
      let peer = try scene.peer(kind, scene.path("a"), .linger)
      try eventually("it is inside") { try peer.output == "inside\n" }
      let killed = Monitor(Instant.now)
      let thread = try Thread("killer") {
        try? scene.waitForWaiting(1)
        killed.withLock { $0 = .now }
        try? peer.child.send(.kill)
      }
      let bystander = try Bystander()
      try scene.another(lease: lease).write(scene.path("a")) { _ in }
      let end = Instant.now
      thread.join()
      return end - killed.withLock { $0 } - bystander.allowance()
    }
    #expect(time < bound)
    #expect(try scene.leftovers() == [])
  }

  @Test func aStoppedWaiterIsPassedOverAndComesAgainUnnoticed() throws {
    let order = Heard<String>()
    var peer: Running?
    var thread: Thread?
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      peer = try scene.peer(.replace, scene.path("a"), .write("peer"))
      try scene.waitForWaiting(1)
      try peer?.child.send(.stop)
      try peer?.waitUntilStopped()
      thread = try Thread("second") {
        try? scene.another(lease: .seconds(1)).write(scene.path("a")) { _ in order.add("second") }
      }
      try scene.waitForWaiting(2)
    }
    thread?.join()
    #expect(order.all == ["second"])
    #expect(try scene.read("a") == nil)
    try peer?.child.send(.go)
    #expect(try peer?.outcome().output == "inside\ndone\n")
    #expect(try scene.read("a") == "peer")
    #expect(try scene.leftovers() == [])
  }

  /// A peer that is to replace a file, and is suspended by a fault on the way.
  private func stopped(_ faults: String) throws -> Running {
    let peer = try scene.peer(
      .replace, scene.path("a"), .write("stopped"), environment: ["WORMHOLE_FAULTS=\(faults)"])
    try peer.waitUntilStopped()
    return peer
  }

  /// A replacing process is skipped before it makes its hidden directory, or afterwards, and dies
  /// before it is notified of the skip.
  @Test(arguments: ["rename~running@1:before:stop", "mkdir~.wormhole-@1:before:stop"])
  func whatOneLeavesThatWasPassedOverAndDiedIsRemovedByTheNext(_ rule: String) throws {
    let peer = try stopped("\(rule);rename~running@1:before:kill")
    try scene.another().write(scene.path("a")) { _ in }
    #expect(try scene.names(in: .waiting) == [])
    let container = try scene.arbiters.room(for: AccessPath(scene.path("a"))).container
    let passed = try container.inspect().filter { $0.subject.contains("passed/") }
    #expect(passed.map(\.severity) == [.note])
    #expect(
      passed.allSatisfy {
        $0.what.contains("once resumed, the process will request again to write '")
      })
    if rule.hasPrefix("mkdir") { try peer.child.send(.go) } else { try peer.child.send(.kill) }
    #expect(try peer.outcome().status == .signalled(9))
    #expect(try scene.leftovers().filter { $0.hasPrefix(".wormhole") }.count == 1)
    let left = try container.inspect().filter { $0.subject.contains("passed/") }
    #expect(left.map(\.isRepairable) == [true])
    try scene.another().write(scene.path("b")) { _ in }
    #expect(try scene.leftovers() == [])
  }

  @Test(arguments: ["rename~passed@1:before:fail=ENOSPC", "mkdir~passed@1:before:fail=ENOSPC"])
  func whoeverPassesAnotherOnAFullDiskIsNotHeldUp(_ rule: String) throws {
    let stopped = try stopped("rename~running@1:before:stop")
    let other = try scene.peer(
      .replace, scene.path("a"), .write("other"), environment: ["WORMHOLE_FAULTS=\(rule)"])
    #expect(try other.outcome().output == "inside\ndone\n")
    #expect(try scene.read("a") == "other")
    try stopped.child.send(.go)
    let outcome = try stopped.outcome()
    #expect(outcome.output == "inside\ndone\n", "\(outcome.errors)")
    #expect(try scene.leftovers() == [])
  }

  private static let noRemoval = FaultRule(
    .rmdir, path: ".wormhole-", persistent: true, .fail(.noSpace))

  @Test func whatCannotBeRemovedOfADeadOneIsRemovedByTheNext() throws {
    let killed = try scene.peer(
      .replace, scene.path("a"), .write("killed"),
      environment: ["WORMHOLE_FAULTS=rename~running@1:after:kill"])
    #expect(try killed.outcome().status == .signalled(9))
    try FaultPoints.with([Self.noRemoval]) { try scene.another().write(scene.path("a")) { _ in } }
    #expect(try scene.leftovers().filter { $0.hasPrefix("passed") }.count == 1)
    #expect(try scene.leftovers().count == 2)
    try scene.another().write(scene.path("b")) { _ in }
    #expect(try scene.leftovers() == [])
  }

  /// The removal fails at the end of an access, and before an access begins.
  @Test(arguments: ["", ";open~.wormhole-@1:before:fail=EMFILE"])
  func whatOneCannotRemoveItselfIsRemovedOnceItHasEnded(_ more: String) throws {
    let peer = try scene.peer(
      .replace, scene.path("a"), .write("peer"),
      environment: ["WORMHOLE_FAULTS=\(Self.noRemoval)\(more)"])
    _ = try peer.outcome()
    #expect(try scene.leftovers().filter { $0.hasPrefix("passed") }.count == 1)
    #expect(try scene.leftovers().count == 2)
    try scene.another().write(scene.path("b")) { _ in }
    #expect(try scene.leftovers() == [])
  }

  @Test func anOvertakerThatIsKilledInTheMiddleLeavesTheRestToTheNext() throws {
    try scene.folder.write("old", to: "files/a")
    let peer = try scene.stopped(.replace, "a")
    let killed = try scene.peer(
      .write, scene.path("a"), .nothing, takeOverAfterMilliseconds: 50,
      environment: ["WORMHOLE_FAULTS=rename~overtaken@1:after:kill"])
    #expect(try killed.outcome().status == .signalled(9))
    #expect(try scene.names(in: .overtaken).count == 1)
    #expect(try scene.leftovers().contains { $0.hasPrefix(".wormhole") })
    try scene.another().write(scene.path("a"), takeOverAfter: .milliseconds(50)) {
      (_: String) throws in
      #expect(try !scene.leftovers().contains { $0.hasPrefix(".wormhole") })
    }
    try peer.child.send(.go)
    _ = try peer.outcome()
    #expect(try scene.read("a") == "old")
    #expect(try scene.leftovers() == [])
  }

  @Test func manyProcessesAddWithoutLosingAnything() throws {
    let (processes, times) = isLong ? (8, 2500) : (4, 25)
    let peers = try (0..<processes).map { _ in
      try Running(
        .coordinateAdd(scene.path("n"), times: times),
        environment: ["WORMHOLE_ROOT=\(scene.folder.path)/groups"])
    }
    for peer in peers {
      let outcome = try peer.outcome(within: .seconds(isLong ? 600 : 60))
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    #expect(try scene.read("n") == "\(processes * times)")
    #expect(try scene.leftovers() == [])
  }

  /// In a long run, the directory takes more than one read.
  ///
  /// No access overtakes an earlier access.
  @Test func manyThatWaitGoInTheirOrder() throws {
    let count = isLong ? 5000 : 200
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    func request(_ index: Int) -> AccessRequest {
      let part = ClaimedPath(AccessPath(scene.path("a")), writes: true)
      return AccessRequest(AccessClaim([part], purpose: "\(index)"), subject: "a")
    }
    let all = (0..<count).map { AccessExecutor(room, request($0), .unlimited) }
    for (index, executor) in all.enumerated() { #expect(try executor.arrive() == (index == 0)) }
    #expect(try scene.names(in: .waiting).count == count - 1)
    for (index, executor) in all.enumerated() {
      try executor.begin()
      if index < 20 {
        #expect(try scene.names(in: .running).count == 1)
        #expect(try !all[count - 1].mayRun())
      }
      try executor.end(commits: false)
    }
    #expect(try scene.leftovers() == [])
  }

  @Test func nothingIsLeftOver() throws {
    let coordinator = scene.another(lease: .seconds(1))
    for index in 0..<(isLong ? 100_000 : 50) {
      try coordinator.write(scene.path("\(index)")) { _ in }
    }
    #expect(try scene.leftovers() == [])
    let processes = try Descriptor.open(
      path: scene.place + "/processes", [.readOnly, .directory])
    #expect(try processes.names().count == 1)
  }

  /// The first access of a process removes the files of dead processes.
  @Test func theFileOfADeadProcessIsRemoved() throws {
    let peer = try scene.peer(.write, scene.path("a"), .linger)
    try eventually("it is inside") { try peer.output == "inside\n" }
    try peer.child.send(.kill)
    #expect(try peer.outcome().status == .signalled(9))
    let processes = try Descriptor.open(
      path: scene.place + "/processes", [.readOnly, .directory])
    let dead = try processes.names()
    try scene.another().write(scene.path("b")) { _ in }
    let left = try processes.names()
    #expect(dead.count == 1 && left.count == 1 && left != dead, "\(dead), \(left)")
    #expect(try scene.leftovers() == [])
  }

  /// A file that another tool has put there is not an access.
  @Test func foreignFilesAreInNobodysWay() throws {
    try scene.another().write(scene.path("a")) { _ in }
    let home = try Descriptor.open(path: scene.place, [.readOnly, .directory])
    let name = "0000000000000001,0123456789abcdef,1"
    for place in AccessPlace.allCases {
      let folder = try home.open(place.name, [.readOnly, .directory])
      for name in ["foreign", name, "ffffffffffffffff,0123456789abcdeg,1"] {
        _ = try folder.open(name, [.writeOnly, .create], mode: 0o600)
      }
      try folder.makeSymbolicLink("0000000000000002,0123456789abcdef,1", to: "/etc/passwd")
      try folder.makeDirectory("0000000000000003,0123456789abcdef,1", mode: 0o700)
    }
    try home.open("processes", [.readOnly, .directory]).makeFIFO("0123456789abcdef", mode: 0o600)
    for _ in 0..<3 { try scene.another().write(scene.path("a"), within: .seconds(5)) { _ in } }
  }
}
