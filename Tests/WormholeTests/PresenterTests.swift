import PropertyLists
import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Those who present files, in the process that uses them.
@Suite(.blocking) struct PresenterTests {
  private let scene: FileScene

  init() throws { scene = try FileScene() }

  /// A presenter that notes what it is asked and told.
  private func present(
    _ name: String, _ coordinator: Wormhole.Coordinator? = nil,
    _ adjust: (inout Wormhole.Coordinator.Presenter) -> Void = { _ in }
  ) throws -> (heard: Heard<String>, subscription: Wormhole.Subscription) {
    let heard = Heard<String>()
    var presenter = Wormhole.Coordinator.Presenter()
    presenter.relinquish = { use, goOn in
      heard.add("\(use)")
      goOn { heard.add("resumed") }
    }
    presenter.save = { done in
      heard.add("save")
      done()
    }
    presenter.delete = { done in
      heard.add("delete")
      done()
    }
    presenter.deleteBelow = { below, done in
      heard.add("delete \(below)")
      done()
    }
    presenter.changed = { heard.add("changed \($0.below ?? ".")\($0.isNew ? ", new" : "")") }
    adjust(&presenter)
    let subscription = try (coordinator ?? scene.another()).present(
      scene.path(name), as: presenter)
    return (heard, subscription)
  }

  @Test func whatCannotBePresentedIsNotKept() throws {
    final class Kept: Sendable {}
    weak var weakly: Kept?
    let rule = FaultRule(.rename, path: "presenters/", .fail(.noSpace))
    FaultPoints.with([rule]) {
      let kept = Kept()
      weakly = kept
      let error = #expect(throws: WormholeError.self) {
        try present("a") { $0.changed = { _ in withExtendedLifetime(kept) {} } }
      }
      #expect(error?.code == .full)
    }
    #expect(weakly == nil)
  }

  @Test func itIsAskedInOrderAndToldAfterwards() throws {
    let (heard, subscription) = try present("a")
    let coordinator = scene.another()
    try coordinator.read(scene.path("a")) { _ in
      #expect(heard.all == ["reading", "save"])
    }
    try eventually("it resumes") { heard.all == ["reading", "save", "resumed"] }
    try coordinator.write(scene.path("a")) { _ in
      #expect(heard.all.suffix(2) == ["writing", "save"])
    }
    try eventually("it is told") { heard.all.suffix(2) == ["resumed", "changed ."] }
    try coordinator.access([.deleting(scene.path("a"))]) { _ in
      #expect(heard.all.suffix(2) == ["writing", "delete"])
    }
    try eventually("it is told") { heard.all.suffix(2) == ["resumed", "changed ."] }
    let count = heard.all.count
    try coordinator.read(scene.path("ab")) { _ in }
    subscription.stop()
    try coordinator.write(scene.path("a")) { _ in }
    #expect(heard.all.count == count)
    // Nobody pays for presenters where there are none.
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }

  /// How many messages a read sends to whoever presents the file, and through which calls.
  private func messages(of body: () throws -> Void) rethrows -> Int {
    try FaultPoints.with { try body() }.filter {
      $0.hasPrefix("rename ") && $0.contains("guests/")
    }.count
  }

  /// Word that a read is over goes to those alone who have something to do then.
  @Test func whoDoesNothingAfterAReadIsSentNoWordOfIt() throws {
    let (heard, subscription) = try present("a") { presenter in
      presenter.relinquish = { _, goOn in goOn(nil) }
    }
    let (path, coordinator) = (scene.path("a"), scene.another())
    try coordinator.read(path) { _ in }
    #expect(try messages { try coordinator.read(path) { _ in } } == 1)
    #expect(heard.all == ["save", "save"])
    // After a write it is told that there may be a change.
    #expect(try messages { try coordinator.write(path) { _ in } } == 2)
    try eventually("it is told") { heard.all.last == "changed ." }
    subscription.stop()
    let (other, _) = try present("a")
    try coordinator.read(path) { _ in }
    #expect(try messages { try coordinator.read(path) { _ in } } == 2)
    let once = ["reading", "save", "resumed"]
    try eventually("it goes on") { other.all.sorted() == (once + once).sorted() }
  }

  /// Several threads hear of questions, and what holds up one of them does not hold up the others.
  @Test func aPresenterIsCalledOnceAtATimeAndInNobodysWay() throws {
    let (gate, calls) = (Gate(), Monitor((now: 0, most: 0)))
    let coordinator = scene.another()
    _ = try present("a", coordinator) { presenter in
      presenter.relinquish = { _, goOn in
        calls.withLock { calls in
          calls.now += 1
          calls.most = max(calls.most, calls.now)
        }
        gate.pass()
        calls.withLock { $0.now -= 1 }
        goOn(nil)
      }
    }
    let (heard, _) = try present("b", coordinator)
    let askers = try (1...2).map { number in
      try Thread("asker \(number)") { [scene] in
        try? scene.another().read(scene.path("a")) { _ in }
      }
    }
    try gate.waitForSomebody()
    let other = scene.another()
    for _ in 1...50 { try other.read(scene.path("b")) { _ in } }
    #expect(heard.all.contains("save"))
    gate.open()
    for asker in askers { asker.join() }
    #expect(calls.withLock { $0.most } == 1)
  }

  /// What it is to do after one access is not taken from it by the end of another.
  @Test func whoGoesOnAfterAReadIsToldSoForEachAccess() throws {
    let turns = Heard<Int>()
    let (heard, _) = try present("a") { presenter in
      presenter.relinquish = { _, goOn in
        // Nothing after the first read, something after the second one.
        turns.add(turns.count)
        let number = turns.count
        guard number > 1 else { return goOn(nil) }
        // As many do: on a thread of their own, and some time later.
        try? Thread("editor") { goOn { turns.add(100 + number) } }.detach()
      }
    }
    let (path, outer, inner) = (scene.path("a"), scene.another(), scene.another())
    try outer.read(path) { _ in
      try inner.read(path) { _ in }
      let thread = try Thread("another") { [self] in
        try? scene.another().read(path) { _ in
          #expect(heard.all.filter { $0 == "save" }.count == 2)
        }
      }
      thread.join()
      try eventually("it goes on after the second") { turns.all == [0, 1, 102] }
    }
    try outer.write(path) { _ in }
    try eventually("it goes on after the write") { turns.all.suffix(2) == [3, 104] }
  }

  /// One look before, and after a write another one, for those who have come meanwhile.
  @Test func whoComesDuringAWriteIsTold() throws {
    var late: Heard<String>?
    try scene.another().write(scene.path("a")) { _ in late = try present("a").heard }
    try eventually("it is told") { late?.all == ["changed ."] }
  }

  /// It sees no access when it looks for those that are there, and was not asked.
  @Test func whoComesBetweenTheQuestionAndTheAccessIsTold() throws {
    let late = Monitor<Heard<String>?>(nil)
    let (first, _) = try present("a") { [self] presenter in
      presenter.relinquish = { _, goOn in
        let heard = try? present("a").heard
        late.withLock { $0 = heard }
        goOn(nil)
      }
    }
    try scene.another().write(scene.path("a")) { _ in }
    try eventually("both are told") {
      late.withLock { $0 }?.all == ["changed ."] && first.all.last == "changed ."
    }
  }

  @Test func itsOwnCoordinatorDoesNotAskIt() throws {
    let coordinator = scene.another()
    let (heard, _) = try present("a", coordinator)
    try coordinator.write(scene.path("a")) { _ in }
    let made = Wormhole.Coordinator(scene.arbiters, presenter: coordinator.purpose)
    try made.write(scene.path("a")) { _ in }
    try scene.another().read(scene.path("a")) { _ in }
    try eventually("others ask it") { heard.all == ["reading", "save", "resumed"] }
  }

  @Test func aFoldersPresenterHearsOfWhatIsInIt() throws {
    try scene.folder.descriptor.makeDirectory("files/folder", mode: 0o700)
    try scene.folder.write("", to: "files/folder/old")
    let (heard, _) = try present("folder")
    let (below, _) = try present("folder/old")
    let coordinator = scene.another()
    try coordinator.write(scene.path("folder/new")) { path in
      _ = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    }
    try eventually("it is told") { heard.all.last == "changed new, new" }
    try coordinator.write(scene.path("folder/old")) { _ in }
    try eventually("it is told") { heard.all.last == "changed old" }
    try coordinator.write(scene.path("folder")) { _ in }
    try eventually("it is told") { heard.all.last == "changed ." }
    try eventually("what is below is told") { below.all.filter { $0 == "changed ." }.count == 2 }
    #expect(below.all.filter { $0 == "writing" }.count == 2)
  }

  /// To Swift the two are one text.
  @Test func whatIsNewIsToldApartByItsBytes() throws {
    try scene.folder.descriptor.makeDirectory("files/folder", mode: 0o700)
    let (old, new) = ("folder/e\u{301}", "folder/\u{e9}")
    try scene.folder.write("", to: "files/" + old)
    let told = Monitor<[[UInt8]: Bool]>([:])
    _ = try present("folder") { presenter in
      presenter.changed = { change in told.signal { $0[Array(change.path.utf8)] = change.isNew } }
    }
    let paths = [old, new].map { scene.path($0) }
    try scene.another().access(paths.map { .writing($0) }) { access in
      _ = try Descriptor.open(path: access.paths[1], [.writeOnly, .create], mode: 0o600)
    }
    try eventually("it is told of both") {
      told.withLock { $0 } == [Array(paths[0].utf8): false, Array(paths[1].utf8): true]
    }
  }

  /// Only those that would not be there any more are asked to let it go.
  @Test func aRemovalInAFolderIsNotThatOfTheFolder() throws {
    try scene.folder.descriptor.makeDirectory("files/folder", mode: 0o700)
    let (heard, _) = try present("folder")
    let (below, _) = try present("folder/old")
    let coordinator = scene.another()
    try coordinator.access([.deleting(scene.path("folder/old"))]) { _ in
      #expect(heard.all == ["writing", "delete old"])
      #expect(below.all == ["writing", "delete"])
    }
    try eventually("both are told") {
      heard.all.last == "changed old" && below.all.last == "changed ."
    }
    try coordinator.access([.deleting(scene.path("folder"))]) { _ in
      #expect(heard.all.suffix(2) == ["writing", "delete"])
      #expect(below.all.suffix(2) == ["writing", "delete"])
    }
  }

  /// What a closure has started goes on for longer, and is inside of nothing then.
  @Test func aTaskThatAClosureHasStartedAsksAgain() throws {
    let (path, other, isOver) = (scene.path("b"), scene.another(), Monitor(false))
    let (heard, _) = try present("b")
    var presenter = Wormhole.Coordinator.Presenter()
    presenter.changed = { _ in
      Task {
        while !isOver.withLock({ $0 }) { await Task.yield() }
        try? await other.access([.writing(path)]) { _ in await Task.yield() }
      }
    }
    _ = try scene.another().present(scene.path("a"), as: presenter) { call in
      call()
      isOver.withLock { $0 = true }
    }
    try scene.another().write(scene.path("a")) { _ in }
    try eventually("it is asked") { heard.all.prefix(2) == ["writing", "save"] }
  }

  /// All are asked at once, and those who save do not wait for each other.
  @Test func severalThatSaveWaitForNobody() throws {
    let coordinators = (0..<3).map { _ in scene.another() }
    let path = scene.path("a")
    var all: [Wormhole.Subscription] = []
    for coordinator in coordinators {
      let (_, subscription) = try present("a", coordinator) { presenter in
        presenter.save = { done in
          try? coordinator.write(path) { path in
            let file = try Descriptor.open(path: path, [.readWrite, .create, .append], mode: 0o600)
            try file.write("x")
          }
          done()
        }
      }
      all.append(subscription)
    }
    try scene.another().read(path) { (_: String) throws in
      #expect(try scene.read("a") == "xxx")
    }
    for subscription in all { subscription.stop() }
  }

  private struct Foreign: Encodable {
    let paths: [String]
    let purpose: String
    let guest: String
  }

  /// Whatever somebody's hand has put there is nobody's presenter.
  @Test func foreignFilesPresentNothing() throws {
    let (heard, _) = try present("a")
    let home = try Descriptor.open(path: scene.place, [.readOnly, .directory])
    let folder = try home.open("presenters", [.readOnly, .directory])
    let process = try home.open("processes", [.readOnly, .directory]).names()[0]
    let own = try folder.names()[0]
    for name in ["foreign", "0123456789abcdef,x", "0123456789abcdef", "\(process),01"] {
      try folder.open(name, [.writeOnly, .create], mode: 0o600).write("x")
    }
    try folder.open("\(process),901", [.writeOnly, .create], mode: 0o600).write("x")
    try folder.makeSymbolicLink("\(process),902", to: own)
    try folder.makeDirectory("\(process),903", mode: 0o700)
    try folder.makeFIFO("\(process),904", mode: 0o600)
    // Well formed, but for what would lead elsewhere.
    for (number, path, guest) in [
      (905, scene.path("a"), "../members/a"), (906, scene.path("a"), ""),
      (907, "a", "0123456789abcdef"),
    ] {
      let foreign = Foreign(paths: [path], purpose: "x", guest: guest)
      let bytes = try BinaryEncoder().encode(foreign)
      let file = try folder.open("\(process),\(number)", [.writeOnly, .create], mode: 0o600)
      try bytes.withUnsafeBytes { try file.writeFully($0) }
    }
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    #expect(try room.everyPresenter().map(\.key.text) == [own])
    let (start, bystander) = (Instant.now, try Bystander())
    try scene.another().write(scene.path("a"), within: .seconds(5)) { _ in }
    let time = Instant.now - start - bystander.allowance()
    #expect(time < Wormhole.Coordinator.Presenter.patience / 2)
    try eventually("it is told") { heard.all.last == "changed ." }
    #expect(try folder.names().count == 12)
  }

  @Test func theDoctorNamesPresentersAndRemovesWhatTheDeadLeft() throws {
    let peer = try scene.presenting("a")
    let container = try scene.arbiters.room(for: AccessPath(scene.path("a"))).container
    let path = scene.path("a")
    let found = try container.inspect()
    #expect(
      found.filter { $0.subject.contains("presenters/") }.map(\.what) == [
        "'TestPeer' (process \(peer.child.process), running) presents '\(path)'"
      ], "\(found)")
    try peer.child.send(.kill)
    _ = try peer.outcome()
    let dead = try container.inspect().filter { $0.subject.contains("presenters/") }
    #expect(dead.map(\.isRepairable) == [true])
    _ = try container.repair()
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }

  /// A process that was asked before is not looked at again until there is word of its end.
  @Test func whatOnePresentsThatWasAskedAndDiesIsRemoved() throws {
    let peer = try scene.presenting("a")
    let coordinator = scene.another()
    try coordinator.read(scene.path("a")) { _ in }
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) != nil)
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try eventually("it is removed") {
      try coordinator.read(scene.path("a")) { _ in }
      return (try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil
    }
  }

  /// Nobody has anything of a presenter's file once its process is dead.
  @Test func whatTheDeadPresentIsRemovedByWhoeverWouldAskThem() throws {
    let peer = try scene.presenting("a")
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try scene.another().read(scene.path("a")) { _ in }
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }
}
