import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Moves that an access reports, and the presenters of the moved files.
@Suite(.blocking) struct PresenterMoveTests {
  private let scene: FileScene

  init() throws { scene = try FileScene() }

  private func present(
    _ name: String, _ coordinator: Coordinator? = nil,
    _ adjust: (inout Coordinator.Presenter) -> Void = { _ in }
  ) throws -> Heard<String> {
    let heard = Heard<String>()
    let top = scene.path("").utf8.count
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { use, goOn in
      heard.add("\(use)")
      goOn { heard.add("resumed") }
    }
    presenter.didChange = { heard.add("changed \($0.path.dropping(bytes: top))") }
    presenter.didMove = { move in
      let (from, to) = (move.from.dropping(bytes: top), move.to.dropping(bytes: top))
      heard.add(
        "\(from) to \(to), \(move.oldRelativePath ?? ".") to \(move.newRelativePath ?? ".")")
    }
    adjust(&presenter)
    try (coordinator ?? scene.another()).present(scene.path(name), as: presenter)
    return heard
  }

  /// Moves a file in `files`, and reports the move.
  private func move(
    _ old: String, _ new: String, _ coordinator: Coordinator? = nil
  ) throws {
    let intents = [old, new].map { Coordinator.Intent.writing(scene.path($0)) }
    try (coordinator ?? scene.another()).access(intents) { access in
      try scene.folder.descriptor.rename(
        "files/" + old, to: scene.folder.descriptor, "files/" + new)
      try access.moved(access.paths[0], to: scene.path(new))
    }
  }

  @Test(.notSanitized("an access asks presenters for two seconds"))
  func whoPresentsWhatIsMovedGoesAlong() throws {
    try scene.folder.write("", to: "files/a")
    let heard = try present("a")
    try move("a", "b")
    // The presenter is paused until the end of the access that asked it under its old name.
    try eventually("it is told") {
      heard.all.contains("changed b") && heard.all.contains("resumed")
    }
    #expect(heard.all.prefix(2) == ["writing", "a to b, . to ."])
    try scene.another().read(scene.path("a")) { _ in #expect(!heard.all.contains("reading")) }
    try scene.another().read(scene.path("b")) { _ in #expect(heard.all.last == "reading") }
    try move("b", "c")
    try move("c", "d")
    try scene.another().read(scene.path("d")) { _ in #expect(heard.all.last == "reading") }
    #expect(
      heard.all.filter { $0.contains(" to ") }.map { $0.prefix(6) } == [
        "a to b", "b to c", "c to d",
      ])
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    #expect(try room.everyPresenter().values.map { $0.paths.map(\.text) } == [[scene.path("d")]])
  }

  @Test(.notSanitized("an access asks presenters for two seconds"))
  func foldersTakeAlongWhatIsInThem() throws {
    try scene.folder.descriptor.makeDirectory("files/in", mode: 0o700)
    try scene.folder.write("", to: "files/in/a")
    let (top, folder, file) = (try present(""), try present("in"), try present("in/a"))
    let plain = try present("in") { $0.didMove = nil }
    try move("in/a", "in/b")
    try eventually("the folder's is told") {
      folder.all.contains("in/a to in/b, a to b") && folder.all.contains("changed in/b")
    }
    try eventually("all are told") {
      top.all.contains("in/a to in/b, in/a to in/b") && file.all.contains("changed in/b")
        && plain.all.contains("changed in/a") && plain.all.contains("changed in/b")
    }
    #expect(!folder.all.contains("changed in/a"))
    try move("in", "out")
    try eventually("what is in it is told") { file.all.contains("in/b to out/b, . to .") }
    #expect(folder.all.contains("in to out, . to ."))
    let asked = Monitor(0)
    try scene.another().read(scene.path("out/b")) { _ in
      asked.withLock { $0 = [folder, file, top].filter { $0.all.last == "reading" }.count }
    }
    #expect(asked.withLock { $0 } == 3)
    try move("out/b", "away")
    try eventually("it is told where it is") { folder.all.contains("out/b to away, b to .") }
  }

  /// A coordinator's own presenters are not notified of its moves.
  @Test(.notSanitized("an access asks presenters for two seconds"))
  func itsOwnPresenterGoesAlongUntold() throws {
    try scene.folder.write("", to: "files/a")
    let coordinator = scene.another()
    let heard = try present("a", coordinator)
    try move("a", "b", coordinator)
    #expect(heard.all == [])
    try scene.another().read(scene.path("b")) { _ in #expect(heard.all == ["reading"]) }
  }

  @Test func onlyWhatTheAccessWritesIsMoved() throws {
    let heard = try present("a")
    let path = scene.path("a")
    let coordinator = scene.another("purpose")
    var kept: Coordinator.Access?
    try coordinator.access([.writing(path), .reading(scene.path("c"))]) { access in
      for other in ["b", "c"] {
        let error = try failure { try access.moved(path, to: scene.path(other)) }
        #expect(error.code == .refused)
      }
      // An enclosing access counts if it has the same purpose.
      try coordinator.write(scene.path("b")) { _ in
        try access.moved(path, to: scene.path("a"))
        try coordinator.access([.writing(path)]) { try $0.moved(path, to: scene.path("b")) }
      }
      kept = access
    }
    try eventually("it is told") { heard.all.contains("changed b") }
    #expect(try failure { try kept?.moved(scene.path("b"), to: path) }.code == .refused)
  }

  @Test func whatIsReplacedByAMoveIsMovedThere() throws {
    try scene.folder.write("text", to: "files/a")
    let heard = try present("a")
    let intents = [
      Coordinator.Intent.writing(scene.path("a")), .replacing(scene.path("b")),
    ]
    let files = try Descriptor.open(path: scene.path(""), [.readOnly, .directory])
    try scene.another().access(intents) { access in
      let hidden = UserPath(access.paths[1])
      try files.rename("a", to: hidden.openParent(), hidden.name)
      try access.moved(access.paths[0], to: access.paths[1])
    }
    #expect(try scene.read("b") == "text")
    try eventually("it is told") { heard.all.contains("changed b") }
    #expect(heard.all.contains("a to b, . to ."))
  }

  @Test func whoPresentsWhatIsMovedToAGroupIsAskedThere() throws {
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    try scene.folder.write("", to: "files/a")
    let heard = try present("a")
    try move("a", "../groups/cinema/b")
    let path = "\(scene.folder.path)/groups/cinema/b"
    try scene.another().read(path) { _ in #expect(heard.all.contains("reading")) }
    #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil)
  }

  /// The presenter is asked twice by one access, because two containers order the link and the
  /// file.
  @Test func whoPresentsALinkToAGroupsFileAnswersForBoth() throws {
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    try scene.folder.write("", to: "groups/cinema/a")
    try scene.folder.descriptor.makeSymbolicLink("files/link", to: "../groups/cinema/a")
    let heard = try present("link")
    for count in 1...2 {
      try scene.another().read(scene.path("link")) { _ in
        #expect(heard.all.filter { $0 == "reading" }.count == 2 * count)
      }
      try eventually("it goes on") {
        heard.all.filter { $0 == "resumed" }.count == 2 * count
      }
    }
  }

  /// The peer is slow, because an access that does not wait for a fast peer could pass by luck.
  @Test func inAnotherProcessItGoesAlongBeforeTheAccessEnds() throws {
    try scene.folder.write("", to: "files/0")
    let peer = try scene.presenting("0", faults: "rename@1+:before:delay=100")
    for index in 0..<3 {
      try move("\(index)", "\(index + 1)")
      // Directly afterwards, without time for an access in between.
      try scene.another().write(scene.path("\(index + 1)")) { (_: String) throws in
        #expect(try peer.output.components("asked before writing\n") == 2 * index + 2)
      }
      try eventually("it is told") {
        try peer.output.contains("moved . to \(scene.path("\(index + 1)"))\n")
      }
    }
  }

  @Test func whoIsStoppedMeanwhileFollowsWhenItGoesOn() throws {
    try scene.folder.write("", to: "files/a")
    let peer = try scene.presenting("a")
    try peer.child.send(.stop)
    try peer.waitUntilStopped()
    try move("a", "b")
    try scene.another().write(scene.path("b")) { _ in }
    #expect(try peer.output == "presenting\n")
    try peer.child.send(.go)
    try eventually("it is told") {
      let output = try peer.output
      return output.contains("moved . to \(scene.path("b"))\n") && output.contains("changed .\n")
    }
    try eventually("it is asked") {
      try scene.another().read(scene.path("b")) { _ in }
      return try peer.output.contains("asked before reading\n")
    }
  }

  /// Otherwise no access would ever ask the presenter at the new path.
  ///
  /// Further attempts may fail too.
  @Test(arguments: [1, 3])
  func whoCannotBeShownThereForAMomentIsShownLater(_ times: Int) throws {
    try scene.folder.write("", to: "files/a")
    let faults = (2...times + 1).map { "rename~presenters/@\($0):before:fail=ENOSPC" }
    let peer = try scene.presenting("a", faults: faults.joined(separator: ";"))
    try move("a", "b")
    #expect(throws: Never.self) {
      try eventually("it is asked") {
        try scene.another().read(scene.path("b")) { _ in }
        return try peer.output.contains("asked before reading\n")
      }
    }
    let room = try scene.arbiters.room(for: AccessPath(scene.path("b")))
    #expect(try room.everyPresenter().values.map { $0.paths.map(\.text) } == [[scene.path("b")]])
  }

  /// The process that presents the moved file.
  enum Place: CaseIterable, Sendable { case here, elsewhere, dead }

  /// A mover that is not notified would wait for the presenter until the deadline.
  @Test(arguments: Place.allCases)
  func theMoverIsNotifiedOnceThePresenterHasFollowed(_ place: Place) throws {
    let (old, new) = (scene.path("a"), scene.path("b"))
    var peer: Running?
    if place == .here {
      try Coordinator(scene.arbiters).present(old, as: Coordinator.Presenter())
    } else {
      peer = try scene.presenting("a")
    }
    let room = try scene.arbiters.room(for: AccessPath(old))
    let (name, entry) = try #require(try room.everyPresenter().first)
    let endpoint = try PresenterEndpoint.of(room)
    #expect((entry.guest == endpoint.address) == (place == .here))
    if place == .dead {
      try peer?.child.send(.kill)
      _ = try peer?.outcome()
    }
    let ended = Heard<Bool>()
    let move = PresenterMove(
      presenter: name.number, from: old, to: new, tells: true, inside: [])
    endpoint.move(move, entry) { ended.add(true) }
    try ended.wait("the end of the move") { $0 == [true] }
    guard place != .dead else { return }
    #expect(try room.everyPresenter().values.map { $0.paths.map(\.text) } == [[new]])
  }

  @Test func aForeignWordOfAMoveLeadsNowhere() {
    for text in ["", "/", "a", "/tmp/", "//tmp", "/tmp/../tmp", "/tmp\0"] {
      #expect(AccessPath(plain: text) == nil)
    }
    #expect(AccessPath(plain: "/tmp/a")?.text == "/tmp/a")
    let (old, new) = (AccessPath("/tmp"), AccessPath("/var/b"))
    #expect(AccessPath("/tmp/a").moved(from: old, to: new)?.text == "/var/b/a")
    #expect(AccessPath("/tmp").moved(from: old, to: new)?.text == "/var/b")
    #expect(AccessPath("/tmpx").moved(from: old, to: new) == nil)
    #expect(AccessPath("/tmp").moved(from: AccessPath("/"), to: new) == nil)
    #expect(AccessPath("/").way(to: old) == "tmp")
    #expect(old.way(to: AccessPath("/tmp/a/b")) == "a/b")
    #expect(old.way(to: old) == nil)
  }
}

extension String {
  /// How often it is there.
  fileprivate func components(_ part: String) -> Int {
    split(separator: "\n").filter { $0 + "\n" == part }.count
  }
}
