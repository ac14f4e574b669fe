import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Failing calls and manually changed directories: neither admits a conflicting access.
@Suite(.blocking) struct CoordinationFailureTests {
  private let scene: FileScene

  /// No process is suspended here, and on a busy machine each may be starved.
  init() throws { scene = try FileScene(lease: .seconds(10)) }

  /// An access file that cannot be read may belong to a conflicting access.
  @Test func whoIsInTheWayAndCannotBeReadIsNotPassedBy() throws {
    let path = scene.path("a")
    try scene.whileSomebody(.writing(path)) { () throws in
      let coordinator = scene.another()
      FaultPoints.with([FaultRule(.open, path: "running/", .fail(.tooManyOpenFiles))]) {
        let error = #expect(throws: WormholeError.self) {
          try coordinator.write(path, within: .milliseconds(1)) { _ in }
        }
        #expect(error?.errno == Errno.tooManyOpenFiles.rawValue)
      }
      #expect(try !scene.isFree(.writing(path), by: coordinator))
    }
    #expect(try scene.leftovers() == [])
  }

  @Test func whatLiesWhereAnAccessIsStagedIsRemoved() throws {
    let path = scene.path("a")
    try scene.another().write(path) { _ in }
    let staging = try Descriptor.open(path: scene.place + "/lock/1.d", [.readOnly, .directory])
    try staging.makeDirectory("next", mode: 0o700)
    try scene.another().write(path) { _ in }
  }

  /// An access whose entry is written in part only would be invisible to others, or name nothing.
  @Test func anAccessWhoseEntryCannotBeWrittenDoesNotBegin() throws {
    try scene.another().write(scene.path("a")) { _ in }
    let rule = FaultRule(.write, path: "/next", .fail(.noSpace))
    let calls = FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) {
        try scene.another().write(scene.path("a")) { _ in Issue.record("it has begun") }
      }
      #expect(error?.code == .full)
    }
    #expect(calls.contains { $0.hasPrefix("write") && $0.hasSuffix("/next") }, "\(calls)")
    #expect(try scene.leftovers() == [])
    try scene.another().write(scene.path("a")) { _ in }
  }

  /// The remaining file of an ended access would block all later accesses.
  @Test func anAccessWhoseRemovalFailsForAMomentIsRemoved() throws {
    let path = scene.path("a")
    let rules = (1...2).map {
      FaultRule(.unlink, path: "running/", number: $0, .fail(.inputOutput))
    }
    FaultPoints.with(rules) {
      #expect(throws: Never.self) { try scene.another().write(path) { _ in } }
    }
    #expect(try scene.leftovers() == [])
  }

  /// The same renames as by an access that overtakes.
  private func overtake() throws {
    let place = try Descriptor.open(path: scene.place, [.readOnly, .directory])
    let running = try scene.names(in: .running)
    #expect(running.count == 1)
    for name in running { try place.rename("running/" + name, to: place, "overtaken/" + name) }
  }

  @Test func theErrorOfTheBodyComesBeforeATakeoverOfItsAccess() throws {
    let path = scene.path("a")
    let late = try failure { try scene.another().write(path) { _ in try overtake() } }
    #expect(late.code == .superseded)
    #expect(throws: Missing.self) {
      try scene.another().write(path) { _ in
        try overtake()
        throw Missing()
      }
    }
  }

  /// The containers of both groups have the same identifier.
  @Test func aCopyOfAGroupIsAnotherGroup() throws {
    for name in ["cinema", "copy"] {
      try scene.folder.descriptor.makeDirectory("groups/\(name)", mode: 0o700)
      try scene.folder.descriptor.makeDirectory("groups/\(name)/.wormhole", mode: 0o700)
    }
    let paths = ["cinema", "copy"].map { "\(scene.folder.path)/groups/\($0)/file" }
    try scene.another().write(paths[0]) { _ in }
    let names = try Descriptor.open(
      path: "\(scene.folder.path)/groups/cinema/.wormhole", [.readOnly, .directory]
    ).names()
    let marker = try #require(names.first { $0.hasSuffix(".plist") }, "\(names)")
    try scene.folder.descriptor.link(
      "groups/cinema/.wormhole/" + marker, to: scene.folder.descriptor,
      "groups/copy/.wormhole/" + marker)
    let ids = try paths.map { try scene.arbiters.room(for: AccessPath($0)).container.id }
    #expect(ids[0] == ids[1])
    try scene.another().access(paths.map { .writing($0) }) { access throws in
      for path in access.paths { #expect(try !scene.isFree(.writing(path)), "\(path)") }
    }
  }

  @Test func aPresenterThatCouldNotBeReadIsReadTheNextTime() throws {
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.path) }
    try scene.another().present(scene.path("a"), as: presenter)
    let coordinator = scene.another()
    let rule = FaultRule(
      .open, path: "presenters/", persistent: true, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) { try coordinator.write(scene.path("a")) { _ in } }
    #expect(heard.all == [])
    try coordinator.write(scene.path("a")) { _ in }
    try eventually("it is told") { heard.all == [scene.path("a")] }
  }

  /// Only a presenter that knows the present writers notices their death.
  @Test func whoCannotReadThePresentWritersIsNotRegistered() throws {
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.path) }
    let (path, coordinator, used) = (scene.path("a"), scene.another(), presenter)
    let peer = try scene.peer(.write, path, .linger)
    try eventually("it writes") { try peer.output == "inside\n" }
    let rule = FaultRule(
      .open, path: "running/", persistent: true, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) {
      let error = try failure { _ = try coordinator.present(path, as: used) }
      #expect(error.errno == Errno.tooManyOpenFiles.rawValue)
    }
    let presenting = try coordinator.present(path, as: used)
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try eventually("it is told") { heard.all.contains(path) }
    presenting.stop()
  }

  /// The call fails, so no access may ask the presenter.
  ///
  /// Two containers order the link and its target.
  @Test func aPresenterThatOnlyOneOfTwoContainersTakesIsWithdrawn() throws {
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    try scene.folder.write("", to: "groups/cinema/film")
    try scene.folder.descriptor.makeSymbolicLink("files/a", to: "../groups/cinema/film")
    let rule = FaultRule(.rename, path: "presenters/", number: 2, .fail(.noSpace))
    try FaultPoints.with([rule]) {
      let error = try failure {
        _ = try scene.another().present(scene.path("a"), as: Coordinator.Presenter())
      }
      #expect(error.errno == Errno.noSpace.rawValue)
    }
    for path in [scene.path("a"), "\(scene.folder.path)/groups/cinema/film"] {
      let room = try scene.arbiters.room(for: AccessPath(path))
      #expect(try room.everyPresenter().isEmpty, "\(path)")
    }
  }

  @Test func whoWasAskedIsToldThoughNobodyCanBeLookedFor() throws {
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.path) }
    try scene.another().present(scene.path("a"), as: presenter)
    let coordinator = scene.another()
    try coordinator.read(scene.path("a")) { _ in }
    // The first listing looks for the presenters that are to be asked.
    let rule = FaultRule(
      .open, path: "coordination/presenters", number: 2, .fail(.inputOutput))
    try FaultPoints.with([rule]) { try coordinator.write(scene.path("a")) { _ in } }
    try eventually("it is told") { heard.all == [scene.path("a")] }
  }

  /// A program that registers as presenter first removes the access of a dead writer.
  ///
  /// If the program cannot list the presenters then, its next access tells them.
  @Test(arguments: [false, true])
  func whoPresentsSomethingTellsOthersOfTheDead(_ isRefused: Bool) throws {
    let (late, begun) = (Heard<String>(), Monitor(false))
    var (first, other) = (Coordinator.Presenter(), Coordinator.Presenter())
    other.didChange = { late.add($0.path) }
    let (path, second) = (scene.path("a"), other)
    first.relinquish = { [self] _, goOn in
      // The second presenter is not asked, and sees no writer.
      _ = try? scene.another().present(path, as: second)
      begun.withLock { $0 = true }
      goOn(nil)
    }
    try scene.another().present(path, as: first)
    let peer = try scene.peer(.write, path, .linger)
    try eventually("it writes") { try peer.output == "inside\n" }
    #expect(begun.withLock { $0 })
    try peer.child.send(.kill)
    _ = try peer.outcome()
    let coordinator = scene.another()
    let rule = FaultRule(
      .fstatat, path: "coordination/presenters", persistent: true, .fail(.inputOutput))
    try FaultPoints.with(isRefused ? [rule] : []) {
      _ = try coordinator.present(scene.path("b"), as: Coordinator.Presenter())
    }
    if isRefused { try coordinator.read(scene.path("c")) { _ in } }
    try eventually("it is told") { late.all.contains(path) }
  }

  @Test(arguments: ["waiting", "running", "overtaken", "processes"])
  func whatAHandHasRemovedIsMadeAnew(_ name: String) throws {
    let (path, coordinator) = (scene.path("a"), scene.another())
    try coordinator.write(path) { _ in }
    try scene.whileSomebody(.writing(scene.path("b"))) {}
    let place = try Descriptor.open(path: scene.place, [.readOnly, .directory])
    try removeTree(name, in: place)
    // This access may be the first to notice the removal, and may fail.
    try? coordinator.write(path) { _ in }
    try coordinator.write(path) { (_: String) throws in
      #expect(try !scene.isFree(.writing(path)))
    }
    try coordinator.read(path) { _ in }
    #expect(try scene.leftovers() == [])
  }

  /// A link and its target, ordered by different containers, are registered one after the other.
  @Test func whatIsMovedWhileItBeginsToBePresentedIsFollowed() throws {
    var scene = scene
    var rooms: [AccessDirectory] = []
    for _ in 0..<64 {
      scene = try FileScene(lease: .seconds(10))
      try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
      try scene.folder.write("", to: "groups/cinema/film")
      try scene.folder.descriptor.makeSymbolicLink("files/a", to: "../groups/cinema/film")
      let paths = [scene.path("a"), "\(scene.folder.path)/groups/cinema/film"]
      rooms = try paths.map { try scene.arbiters.room(for: AccessPath($0)) }
      if rooms[0].container.id < rooms[1].container.id { break }
    }
    let (heard, here) = (Heard<String>(), scene)
    let presenting = Monitor<Subscription?>(nil)
    var threads: [Thread] = []
    try rooms[1].desk.withLock { (_) throws in
      threads.append(
        try Thread("presenting") {
          var presenter = Coordinator.Presenter()
          presenter.didMove = { heard.add($0.to) }
          let presented = try? Coordinator(here.arbiters).present(
            here.path("a"), as: presenter)
          presenting.withLock { $0 = presented }
        })
      try eventually("it is shown") { try !rooms[0].everyPresenter().isEmpty }
      let isMoved = Monitor(false)
      threads.append(
        try Thread("moving") {
          let intents = ["a", "b"].map { Coordinator.Intent.writing(here.path($0)) }
          try? here.another().access(intents) { access in
            try here.folder.descriptor.rename("files/a", to: here.folder.descriptor, "files/b")
            try access.moved(here.path("a"), to: here.path("b"))
          }
          isMoved.signal { $0 = true }
        })
      // A presenter that follows the move has to wait until its registration is complete.
      isMoved.wait(until: .now + .milliseconds(500)) { $0 ? () : nil }
    }
    for thread in threads { thread.join() }
    #expect(presenting.withLock { $0 != nil })
    try eventually("it goes along") { heard.all == [scene.path("b")] }
    let found = try rooms[0].everyPresenter().values.flatMap { $0.paths.map(\.text) }
    #expect(found == [scene.path("b")])
  }
}
