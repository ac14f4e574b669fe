import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

private typealias Machine = PresenterMachine<Int, Int>

/// What a presenter is asked, where it is called, and what becomes of its reply.
@Suite(.blocking) struct PresenterReplyTests {
  /// The file system refuses the reply once, in both of its forms.
  ///
  /// A program that gets no reply asks the presenter no more, until the reply arrives.
  @Test func aReplyThatTheSystemRefusesIsSentLater() throws {
    let scene = try FileScene()
    let (saves, calls) = (Heard<Int>(), Heard<String>())
    var presenter = Coordinator.Presenter()
    presenter.save = { done in
      saves.add(1)
      guard saves.count == 1 else { return done() }
      let rules = [
        FaultRule(.mknod, path: "guests/", persistent: true, .fail(.inputOutput)),
        FaultRule(.rename, path: "guests/", persistent: true, .fail(.inputOutput)),
      ]
      for call in FaultPoints.with(rules, done) { calls.add(call) }
    }
    let presenting = try scene.another().present(scene.path("a"), as: presenter)
    let reader = scene.another()
    try reader.read(scene.path("a")) { _ in }
    try calls.wait("the refused reply") { calls in
      calls.contains { $0.hasPrefix("rename ") && $0.contains("guests/") }
    }
    try eventually("it is asked again") {
      try reader.read(scene.path("a")) { _ in }
      return saves.count >= 2
    }
    presenting.stop()
  }

  /// The access that the presenter was asked for fails while another one still has the file.
  @Test func aPresenterResumesAfterAnAccessThatIsNotAdmitted() throws {
    let scene = try FileScene()
    let (path, calls) = (scene.path("a"), Heard<String>())
    try scene.whileSomebody(.writing(path)) {
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { _, goOn in
        calls.add("relinquish")
        goOn { calls.add("resume") }
      }
      let presenting = try scene.another().present(path, as: presenter)
      let reader = scene.another()
      #expect(throws: WormholeError.self) {
        try reader.read(path, within: .milliseconds(200)) { _ in }
      }
      #expect(throws: Never.self) {
        try calls.wait("it resumes") { $0 == ["relinquish", "resume"] }
      }
      presenting.stop()
    }
  }

  @Test func aPresenterByURLIsCalledOnItsQueue() throws {
    let scene = try FileScene()
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "mine")
    queue.setSpecific(key: key, value: "mine")
    let names = Heard<String?>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { _ in names.add(DispatchQueue.getSpecific(key: key)) }
    let url = URL(filePath: scene.path("a"))
    let presenting = try scene.another().present(url, on: queue, as: presenter)
    try scene.another().write(scene.path("a")) { _ in }
    try names.wait("it is told") { $0.count == 1 }
    #expect(names.all == ["mine"])
    presenting.stop()
  }

  /// The presenter was stopped after an access had listed it, and its process continues.
  @Test func aRequestForAStoppedPresenterHasAReply() throws {
    let scene = try FileScene()
    let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
    let endpoint = try PresenterEndpoint.of(room)
    let guest = try SharedContainer(room.container, Options()).guest()
    let question = PresenterQuestion(
      presenter: 1, access: "access", process: "process", writes: true, saves: true, deletes: nil,
      deleted: nil)
    let holdsOff = try guest.peer(guest: endpoint.address).request(
      question, as: Bool.self, kind: PresenterQuestion.kind, within: patience)
    #expect(!holdsOff)
    guest.leave()
  }

  /// The file of the request could not be removed at first, and the notice has overtaken it.
  @Test func aRequestAfterTheEndOfItsAccessPausesNobody() throws {
    let scene = try FileScene()
    let path = scene.path("a")
    let (calls, changes) = (Heard<String>(), Heard<String>())
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { _, goOn in
      calls.add("relinquish")
      goOn { calls.add("resume") }
    }
    presenter.didChange = { changes.add($0.path) }
    let presenting = try scene.another().present(path, as: presenter)
    let room = try scene.arbiters.room(for: AccessPath(path))
    let (name, entry) = try #require(
      try room.presenters(of: [AccessPath(path)], but: []) { _ in true }.first)
    let guest = try SharedContainer(room.container, Options()).guest()
    let peer = guest.peer(guest: entry.guest)
    let news = PresenterNews(
      presenter: name.number, access: "access", changed: [path], made: [])
    try peer.sendImmediately(news, kind: PresenterNews.kind, within: patience)
    try changes.wait("the notice") { $0 == [path] }
    let question = PresenterQuestion(
      presenter: name.number, access: "access", process: try room.showProcess(), writes: true,
      saves: nil, deletes: nil, deleted: nil)
    let holdsOff = try peer.request(
      question, as: Bool.self, kind: PresenterQuestion.kind, within: patience)
    #expect(!holdsOff)
    #expect(calls.all == [])
    guest.leave()
    presenting.stop()
  }

  // MARK: Steps

  /// A presenter that could save and delete, in the order of its steps.
  private func steps(writes: Bool?, saves: Bool?, deletes: Bool?) -> [Machine.Step] {
    var machine = Machine([.relinquish, .save, .delete])
    machine.begin(at: [AccessPath("/a")])
    let question = PresenterQuestion(
      presenter: 1, access: "access", process: "process", writes: writes, saves: saves,
      deletes: deletes, deleted: nil)
    var steps: [Machine.Step] = []
    var actions = machine.ask(question, as: "g", 1)
    while let (step, access) = call(in: actions) {
      steps.append(step)
      actions = machine.completed(access, resume: nil)
    }
    return steps
  }

  private func call(in actions: [Machine.Action]) -> (Machine.Step, Machine.PresenterAccess)? {
    for case .call(let step, let access) in actions { return (step, access) }
    return nil
  }

  /// One access may write a file and remove a folder above it: nothing is saved that is removed.
  @Test func whatIsRemovedIsNotSavedBefore() {
    #expect(
      steps(writes: true, saves: true, deletes: true) == [.relinquish(.writing), .delete])
    #expect(steps(writes: true, saves: true, deletes: nil) == [.relinquish(.writing), .save])
    #expect(steps(writes: nil, saves: true, deletes: nil) == [.relinquish(.reading), .save])
    #expect(steps(writes: true, saves: nil, deletes: nil) == [.relinquish(.writing)])
  }
}
