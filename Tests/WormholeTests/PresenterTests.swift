import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Presenters of files, in the process that accesses the files.
@Suite(.blocking) struct PresenterTests {
  private let scene: FileScene

  init() throws { scene = try FileScene() }

  /// Adds a presenter that records its requests and notices.
  private func present(
    _ name: String, _ coordinator: Coordinator? = nil,
    _ adjust: (inout Coordinator.Presenter) -> Void = { _ in }
  ) throws -> (heard: Heard<String>, subscription: Subscription) {
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
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
    presenter.didChange = {
      heard.add("changed \($0.relativePath ?? ".")\($0.isNew ? ", new" : "")")
    }
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
        try present("a") { $0.didChange = { _ in withExtendedLifetime(kept) {} } }
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
    // Accesses have no cost for presenters if no presenter is registered.
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }

  /// A writer may make nothing: the path is new only if it exists afterwards.
  @Test func whatAWriterDoesNotMakeIsNotNew() throws {
    try scene.folder.descriptor.makeDirectory("files/f", mode: 0o700)
    let (heard, subscription) = try present("f") { ($0.relinquish, $0.save) = (nil, nil) }
    let (path, coordinator) = (scene.path("f/x"), scene.another())
    try coordinator.write(path) { _ in }
    #expect(throws: Never.self) { try heard.wait("it is told") { $0 == ["changed x"] } }
    try coordinator.write(path) { _ in try scene.folder.write("", to: "files/f/x") }
    #expect(throws: Never.self) { try heard.wait("it is new") { $0.last == "changed x, new" } }
    subscription.stop()
  }

  /// The access ends while the presenter still relinquishes: no process waits for the rest.
  @Test func whatNoAccessWaitsForIsNotSaved() throws {
    let waiting = Monitor<(@Sendable () -> Void)?>(nil)
    let (heard, subscription) = try present("a") { presenter in
      presenter.relinquish = { _, goOn in waiting.signal { $0 = { goOn(nil) } } }
    }
    let (path, coordinator) = (scene.path("a"), scene.another())
    // On a busy machine the presenter may receive a request after the end of its access.
    let resume = try eventually("it was asked") {
      try coordinator.write(path, within: .milliseconds(200)) { _ in }
      return waiting.withLock { $0.take() }
    }
    try heard.wait("it is told") { !$0.isEmpty }
    let told = heard.count
    resume()
    // The calls of a presenter are in order: this access's request follows the skipped step.
    try coordinator.write(path, within: .milliseconds(200)) { _ in }
    try heard.wait("it is told again") { $0.count > told }
    #expect(heard.all.allSatisfy { $0 == "changed ." }, "\(heard.all)")
    subscription.stop()
  }

  /// How many messages a body's accesses send to presenters, by the renames into `guests/`.
  private func messages(of body: () throws -> Void) rethrows -> Int {
    try FaultPoints.with { try body() }.filter {
      $0.hasPrefix("rename ") && $0.contains("guests/")
    }.count
  }

  /// The notice that a read has ended goes only to presenters that wait for the end.
  @Test func whoDoesNothingAfterAReadIsSentNoWordOfIt() throws {
    let (heard, subscription) = try present("a") { presenter in
      presenter.relinquish = { _, goOn in goOn(nil) }
    }
    let (path, coordinator) = (scene.path("a"), scene.another())
    try coordinator.read(path) { _ in }
    #expect(try messages { try coordinator.read(path) { _ in } } == 1)
    #expect(heard.all == ["save", "save"])
    // After a write, the presenter is notified of a possible change.
    #expect(try messages { try coordinator.write(path) { _ in } } == 2)
    try eventually("it is told") { heard.all.last == "changed ." }
    subscription.stop()
    let (other, _) = try present("a")
    try coordinator.read(path) { _ in }
    #expect(try messages { try coordinator.read(path) { _ in } } == 2)
    let once = ["reading", "save", "resumed"]
    try eventually("it goes on") { other.all.sorted() == (once + once).sorted() }
  }

  /// Several threads receive requests, and a thread that is held up does not hold up the rest.
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

  /// The end of one access does not cancel the presenter's work after another access.
  @Test func whoGoesOnAfterAReadIsToldSoForEachAccess() throws {
    let (turns, saves) = (Heard<Int>(), Heard<Int>())
    let (heard, _) = try present("a") { presenter in
      presenter.relinquish = { _, goOn in
        // Nothing after the first read, and a closure after the second.
        turns.add(turns.count)
        let number = turns.count
        guard number > 1 else { return goOn(nil) }
        // As in many programs: on a separate thread, and some time later.
        try? Thread("editor") { goOn { turns.add(100 + number) } }.detach()
      }
    }
    let (path, outer, inner) = (scene.path("a"), scene.another(), scene.another())
    try outer.read(path) { _ in
      try inner.read(path) { _ in }
      let thread = try Thread("another") { [self] in
        try? scene.another().read(path) { _ in
          saves.add(heard.all.filter { $0 == "save" }.count)
        }
      }
      thread.join()
      #expect(saves.all == [2])
      try eventually("it goes on after the second") { turns.all == [0, 1, 102] }
    }
    try outer.write(path) { _ in }
    try eventually("it goes on after the write") { turns.all.suffix(2) == [3, 104] }
  }

  /// The presenters are listed before an access, and again after a write, to find late presenters.
  @Test func whoComesDuringAWriteIsTold() throws {
    var late: Heard<String>?
    try scene.another().write(scene.path("a")) { _ in late = try present("a").heard }
    try eventually("it is told") { late?.all == ["changed ."] }
  }

  /// The containers of an access come in a random order: of seven, one without a presenter is the
  /// first in nearly every access.
  @Test(arguments: 0...3) func itIsAskedThoughAnotherContainerHasNone(_ index: Int) throws {
    var paths = [scene.path("a")]
    for number in 0..<6 {
      try scene.folder.descriptor.makeDirectory("groups/cinema\(number)", mode: 0o700)
      paths.append("\(scene.folder.path)/groups/cinema\(number)/b")
    }
    let asked = Heard<Int>()
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { _, goOn in
      asked.add(1)
      goOn(nil)
    }
    let subscription = try scene.another().present(paths[index], as: presenter)
    try scene.another().access(paths.map { .writing($0) }) { _ in #expect(asked.count == 1) }
    subscription.stop()
  }

  /// The late presenter finds no access when it registers, and was not asked.
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
    #expect(throws: Never.self) {
      try eventually("both are told") {
        late.withLock { $0 }?.all == ["changed ."] && first.all.last == "changed ."
      }
    }
  }

  @Test func itsOwnCoordinatorDoesNotAskIt() throws {
    let coordinator = scene.another()
    let (heard, _) = try present("a", coordinator)
    try coordinator.write(scene.path("a")) { _ in }
    let made = Coordinator(scene.arbiters, presenter: coordinator.purpose)
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

  /// To Swift, the two names are the same text.
  @Test func whatIsNewIsToldApartByItsBytes() throws {
    try scene.folder.descriptor.makeDirectory("files/folder", mode: 0o700)
    let (old, new) = ("folder/e\u{301}", "folder/\u{e9}")
    try scene.folder.write("", to: "files/" + old)
    let told = Monitor<[[UInt8]: Bool]>([:])
    _ = try present("folder") { presenter in
      presenter.didChange = { change in told.signal { $0[Array(change.path.utf8)] = change.isNew } }
    }
    let paths = [old, new].map { scene.path($0) }
    try scene.another().access(paths.map { .writing($0) }) { access in
      _ = try Descriptor.open(path: access.paths[1], [.writeOnly, .create], mode: 0o600)
    }
    try eventually("it is told of both") {
      told.withLock { $0 } == [Array(paths[0].utf8): false, Array(paths[1].utf8): true]
    }
  }

  /// Only presenters whose file would be gone are asked to give the file up.
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

  /// A task that a callback has started outlives the callback, and then is inside no access.
  @Test func aTaskThatAClosureHasStartedAsksAgain() throws {
    let (path, other, isOver) = (scene.path("b"), scene.another(), Monitor(false))
    let (heard, _) = try present("b")
    var presenter = Coordinator.Presenter()
    presenter.didChange = { _ in
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

  /// All presenters are asked at once, and saving presenters do not wait for each other.
  @Test func severalThatSaveWaitForNobody() throws {
    let coordinators = (0..<3).map { _ in scene.another() }
    let path = scene.path("a")
    var all: [Subscription] = []
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

  /// A file that another tool has put there is not a presenter.
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
    // Well formed, except for the part that would lead elsewhere.
    for (number, path, guest) in [
      (905, scene.path("a"), "../members/a"), (906, scene.path("a"), ""),
      (907, "a", "0123456789abcdef"),
    ] {
      let foreign = Foreign(paths: [path], purpose: "x", guest: guest)
      let bytes = try BinaryEncoder().encode(foreign)
      let file = try folder.open("\(process),\(number)", [.writeOnly, .create], mode: 0o600)
      try file.writeFully(bytes)
    }
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    #expect(try room.everyPresenter().map(\.key.text) == [own])
    let bound = Coordinator.Presenter.responseTimeout / 2
    let time = try Bystander.leastOfThree(within: bound) {
      try Bystander.time {
        try scene.another().write(scene.path("a"), within: .seconds(5)) { _ in }
      }
    }
    #expect(time < bound)
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

  /// A process that was asked before is not checked again until a notice of its end.
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

  /// A presenter's file has no user once its process is dead.
  @Test func whatTheDeadPresentIsRemovedByWhoeverWouldAskThem() throws {
    let peer = try scene.presenting("a")
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try scene.another().read(scene.path("a")) { _ in }
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }
}
