import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

extension FileScene {
  /// A process that presents a file.
  func presenting(
    _ name: String, _ manner: PeerJob.Presenting = .plainly, faults: String = ""
  ) throws -> Running {
    let peer = try Running(
      .present(path(name), manner),
      environment: ["WORMHOLE_ROOT=\(folder.path)/groups", "WORMHOLE_FAULTS=\(faults)"])
    try eventually("it presents") { try peer.output.hasPrefix("presenting\n") }
    return peer
  }
}

/// Presenters in other processes: accesses find the saved content, and no presenter delays for
/// long.
@Suite(.blocking, .notSanitized("many processes at once"))
struct PresenterProcessTests {
  private let scene: FileScene
  private let bound = Coordinator.Presenter.responseTimeout

  init() throws { scene = try FileScene() }

  /// The time of an access, less the delay that the machine caused to all processes, and in full.
  private func time(_ body: () throws -> Void) throws -> (least: Duration, all: Duration) {
    let (bystander, start) = (try Bystander(), Instant.now)
    try body()
    let time = Instant.now - start
    return (time - bystander.allowance(), time)
  }

  /// Fails the test if each of three accesses waits for presenters.
  ///
  /// On a busy machine the presenter's or the access's thread alone may not run for a while.
  private func expectNoWait(_ body: () throws -> Void) throws {
    let least = try Bystander.leastOfThree(within: bound / 2) { try time(body).least }
    #expect(least < bound / 2)
  }

  @Test(arguments: [PeerJob.Coordination.read, .write, .replace])
  func whatAPresenterSavesIsWhatOthersFind(_ kind: PeerJob.Coordination) throws {
    try scene.folder.write("old", to: "files/a")
    let peer = try scene.presenting("a", .save("saved"))
    let intent: Coordinator.Intent =
      switch kind {
      case .read: .reading(scene.path("a"))
      case .write: .writing(scene.path("a"))
      case .replace: .replacing(scene.path("a"))
      }
    var found: String?
    try scene.another().access([intent]) { access in
      found = try scene.read("a")
      guard kind == .replace else { return }
      try Descriptor.open(path: access.paths[0], [.writeOnly, .create], mode: 0o600).write("new")
    }
    #expect(found == "saved")
    let use = kind == .read ? "reading" : "writing"
    let told = kind == .read ? "" : "changed .\n"
    try eventually("it is told") {
      try peer.output == "presenting\nasked before \(use)\nsaved\nresumed\n" + told
    }
  }

  @Test func aHungPresenterDelaysOneAccess() throws {
    let peer = try scene.presenting("a", .hang(until: scene.path("go")))
    let coordinator = scene.another()
    let first = try time { try coordinator.write(scene.path("a")) { _ in } }
    #expect(first.all >= bound && first.least < bound * 3 / 2)
    try expectNoWait {
      for _ in 0..<3 { try coordinator.read(scene.path("a")) { _ in } }
    }
    // Nor does the presenter delay an access beyond the access's own deadline.
    try expectNoWait {
      try scene.another().write(scene.path("a"), within: .milliseconds(100)) { _ in }
    }
    try scene.folder.write("", to: "files/go")
    try eventually("it is told") {
      try peer.output.contains("resumed\n") && peer.output.contains("changed .\n")
    }
    // After its reply, the presenter is asked again.
    try eventually("it is asked") {
      try coordinator.read(scene.path("a")) { _ in }
      return try peer.output.contains("asked before reading\n")
    }
  }

  /// The hanging presenters outnumber the threads that receive notices.
  @Test func thoseThatHangKeepNoOtherOfTheirProgramFromAnswering() throws {
    let hung = (1...6).map { scene.path("hung \($0)") }
    let peer = try Running(
      .presentAmong(hung, scene.path("a")),
      environment: ["WORMHOLE_ROOT=\(scene.folder.path)/groups"])
    try eventually("it presents") { try peer.output == "presenting\n" }
    let askers = try hung.map { path in
      try Thread("asker") { [scene] in try? scene.another().write(path) { _ in } }
    }
    try eventually("all hang") { try peer.output.split(separator: "\n").count == 1 + hung.count }
    try expectNoWait { try scene.another().write(scene.path("a")) { _ in } }
    #expect(try peer.output.contains("asked before writing\n"))
    for asker in askers { asker.join() }
  }

  /// A new presenter awaits the ends of all other accesses that write.
  @Test func aWriterOfThePresentersPurposeIsNotAwaited() throws {
    let peer = try scene.peer(.write, scene.path("a"), .stop, environment: ["WORMHOLE_PURPOSE=one"])
    try peer.waitUntilStopped()
    let path = AccessPath(scene.path("a"))
    let room = try scene.arbiters.room(for: path)
    #expect(try room.writers(of: [path], but: "one") == [])
    #expect(try room.writers(of: [path], but: "two").map(\.process).count == 1)
    try peer.child.send(.go)
    #expect(try peer.outcome().status == .exited(0))
  }

  /// Otherwise presenters of the file would resume before the access continues.
  @Test func aSuspendedAccessIsUnderWay() throws {
    let scene = try FileScene(lease: .milliseconds(50))
    let peer = try scene.stopped(.write, "a")
    let coordinator = Coordinator(scene.arbiters)
    let error = try failure { try coordinator.write(scene.path("a")) { _ in } }
    #expect(error.code == .stopped)
    let path = AccessPath(scene.path("a"))
    let room = try scene.arbiters.room(for: path)
    #expect(try room.writers(of: [path], but: "").map(room.isUnderWay) == [true])
    try peer.child.send(.go)
    #expect(try peer.outcome().status == .exited(0))
  }

  /// A presenter may be suspended after its reply, and for long: an expired notice would leave the
  /// presenter paused for as long as the writer lives.
  @Test func theEndOfAPauseReachesAPresenterThatWasSuspendedForHours() throws {
    let peer = try scene.presenting("a")
    try scene.another().write(scene.path("a")) { _ in
      try peer.child.send(.stop)
      try peer.waitUntilStopped()
    }
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    let found = try run("find", [room.container.path, "-path", "*/live/*", "-name", "*,m,*"])
    let names = found.output.split(separator: "\n")
    let deadlines = names.compactMap { Int64($0.suffix(16), radix: 16) }
    #expect(deadlines.count == 1, "\(names)")
    #expect(deadlines.allSatisfy { $0 > Clocks.sinceBoot + 86_400_000_000_000 })
    try peer.child.send(.go)
    try eventually("it resumes") { try peer.output.contains("resumed\n") }
  }

  /// Otherwise the presenter would count as hanging, and would not be asked for an hour.
  @Test func anAnswerThatCannotBeGivenForAMomentIsGivenLater() throws {
    let peer = try scene.presenting("a", faults: "rename~,a,@1:before:fail=EIO")
    let coordinator = scene.another()
    try coordinator.write(scene.path("a")) { _ in }
    try eventually("it is asked") {
      try coordinator.read(scene.path("a")) { _ in }
      return try peer.output.contains("asked before reading\n")
    }
  }

  /// The writer's access is removed already, so no process finds it and notifies in the writer's
  /// place.
  @Test func aWriterThatDiesAtItsEndHasTold() throws {
    let scene = scene
    // On a busy machine the presenter may reply after the writer's limit, and register the listener
    // after the writer's end: then no process notifies the listener.
    try eventually("the presenter replies in time") {
      let (late, errors) = (Heard<String>(), Heard<String>())
      var listener = Coordinator.Presenter()
      listener.didChange = { _ in late.add("changed") }
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { [listener] _, goOn in
        // After the request, and before the access exists.
        do {
          try scene.another().present(scene.path("a"), as: listener)
        } catch {
          errors.add("\(error)")
        }
        goOn(nil)
      }
      let presenting = try scene.another().present(scene.path("a"), as: presenter)
      defer { presenting.stop() }
      let began = Instant.now
      let peer = try Running(
        .coordinate(.write, scene.path("a"), .nothing, takeOverAfterMilliseconds: nil),
        environment: [
          "WORMHOLE_ROOT=\(scene.folder.path)/groups",
          "WORMHOLE_FAULTS=unlink~running/@1:after:kill",
        ])
      #expect(try peer.outcome().status == .signalled(9))
      #expect(errors.all == [])
      guard Instant.now - began < bound else { return false }
      try eventually("it is told") { !late.all.isEmpty }
      return true
    }
  }

  /// The presenter is not asked before a read, so its suspension delays no reader.
  @Test func whoOnlyListensIsAskedByWritersAlone() throws {
    let peer = try scene.presenting("a", .listening)
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    let coordinator = Coordinator(scene.arbiters)
    try peer.child.send(.stop)
    try peer.waitUntilStopped()
    try coordinator.read(scene.path("a")) { _ in }
    // A process that asks presenters has an endpoint for the replies.
    #expect(room.desk.withLock { $0 == nil })
    try coordinator.write(scene.path("a")) { _ in }
    #expect(room.desk.withLock { $0 != nil })
    try peer.child.send(.go)
    try eventually("it is told") { try peer.output == "presenting\nchanged .\n" }
  }

  @Test func aStoppedPresenterDelaysOneAccess() throws {
    let peer = try scene.presenting("a")
    try peer.child.send(.stop)
    try peer.waitUntilStopped()
    let coordinator = scene.another()
    let first = try time { try coordinator.write(scene.path("a")) { _ in } }
    #expect(first.all >= .seconds(1) && first.least < .milliseconds(1700))
    try expectNoWait {
      for _ in 0..<3 { try coordinator.write(scene.path("a")) { _ in } }
    }
    #expect(try peer.output == "presenting\n")
    try peer.child.send(.go)
    try eventually("it is told") {
      try peer.output.contains("resumed\n") && peer.output.contains("changed .\n")
    }
    try eventually("it is asked") {
      try coordinator.read(scene.path("a")) { _ in }
      return try peer.output.contains("asked before reading\n")
    }
  }

  @Test func nobodyWaitsForAKilledPresenter() throws {
    let peer = try scene.presenting("a", .hang(until: scene.path("never")))
    let thread = try Thread("killer") {
      try? eventually("it is asked") { try peer.output.contains("asked") }
      try? peer.child.send(.kill)
    }
    let first = try time { try scene.another().write(scene.path("a")) { _ in } }
    thread.join()
    // The wait ends before the timeout; the delay that the machine may have added is subtracted
    // already.
    #expect(first.least < bound / 2)
  }

  @Test func whenAnAccessIsCancelledItsWaitForPresentersEnds() throws {
    let peer = try scene.presenting("a", .hang(until: scene.path("never")))
    let coordinator = scene.another()
    let thread = try Thread("canceller") {
      try? eventually("it is asked") { try peer.output.contains("asked") }
      coordinator.cancel()
    }
    let wait = try time {
      let error = try failure { try coordinator.write(scene.path("a")) { _ in } }
      #expect(error.code == .cancelled)
    }
    thread.join()
    #expect(wait.least < bound / 2)
  }

  /// The dead process sends no message, so its presenters detect the death themselves.
  @Test func aPresenterGoesOnWhenWhoeverAskedItDies() throws {
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { use, goOn in
      heard.add("\(use)")
      goOn { heard.add("resumed") }
    }
    presenter.didChange = { _ in heard.add("changed") }
    let subscription = try scene.another().present(scene.path("a"), as: presenter)
    let peer = try scene.peer(.write, scene.path("a"), .linger)
    try eventually("it is inside") { try peer.output == "inside\n" }
    #expect(heard.all == ["writing"])
    try peer.child.send(.kill)
    #expect(throws: Never.self) {
      try eventually("it goes on") { heard.all == ["writing", "resumed", "changed"] }
    }
    subscription.stop()
  }

  /// The writer came before the presenter and has not asked it, and a dying process sends no
  /// notice.
  @Test func whoComesWhileAWriterIsInsideHearsOfItsDeath() throws {
    let peer = try scene.peer(.write, scene.path("a"), .linger)
    try eventually("it is inside") { try peer.output == "inside\n" }
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { _ in heard.add("changed") }
    let subscription = try scene.another().present(scene.path("a"), as: presenter)
    try peer.child.send(.kill)
    try eventually("it is told") { heard.all.contains("changed") }
    subscription.stop()
  }

  enum Burial: CaseIterable { case access, otherProcess, doctor }

  /// A presenter that registers between the request and the access finds no writer, and was not
  /// asked: the process that removes the dead writer's files notifies the presenter.
  @Test(arguments: Burial.allCases) func whoeverBuriesAWriterTellsOfIt(_ burial: Burial) throws {
    let (early, late) = (Heard<String>(), Heard<String>())
    let isThere = Monitor(false)
    let (scene, other) = (scene, scene.another())
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { _, goOn in
      early.add("asked")
      var second = Coordinator.Presenter()
      second.didChange = { _ in late.add("changed") }
      let isFirst = isThere.withLock { isThere in
        defer { isThere = true }
        return !isThere
      }
      if isFirst { _ = try? other.present(scene.path("a"), as: second) }
      goOn { early.add("resumed") }
    }
    presenter.didChange = { _ in early.add("changed") }
    let subscription = try scene.another().present(scene.path("a"), as: presenter)
    let peer = try scene.peer(.write, scene.path("a"), .linger)
    try eventually("it is inside") { try peer.output == "inside\n" }
    try peer.child.send(.kill)
    _ = try peer.outcome()
    #expect(late.all == [])
    // This access reads, so the access itself is not a change.
    switch burial {
    case .access: try scene.another().read(scene.path("a")) { _ in }
    case .otherProcess:
      let reader = try scene.peer(.read, scene.path("a"), .nothing)
      #expect(try reader.outcome().output == "inside\ndone\n")
    case .doctor:
      let container = try SharedContainer(
        directory: "\(scene.folder.path)/groups/wormhole.user/.wormhole")
      #expect(try container.repair().contains { $0.subject.contains("running/") })
    }
    #expect(throws: Never.self) {
      try eventually("both are told") {
        late.all.contains("changed") && early.all.contains("changed")
          && early.all.contains("resumed")
      }
    }
    subscription.stop()
  }

  @Test func threeProgramsThatPresentAndAddLoseNothing() throws {
    let times = TestRun.isLong ? 1000 : 20
    let peers = try (0..<3).map { _ in
      try Running(
        .presentAndAdd(scene.path("n"), times: times),
        environment: ["WORMHOLE_ROOT=\(scene.folder.path)/groups"])
    }
    try eventually("all have added", within: .seconds(TestRun.isLong ? 600 : 60)) {
      try peers.allSatisfy { try $0.output.contains("added\n") || $0.hasEnded }
    }
    #expect(try scene.read("n") == "\(3 * times)")
    try eventually("each shows it") {
      try peers.allSatisfy { peer in
        let shown = try peer.output.split(separator: "\n").last { $0.hasPrefix("shows") }
        return shown == "shows \(3 * times)"
      }
    }
    for peer in peers { #expect(try peer.errors == "") }
  }
}
