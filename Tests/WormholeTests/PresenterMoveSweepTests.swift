import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Moves of presented files, with the mover or the presenter killed or suspended at its system
/// calls: a few calls that are drawn, or all in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.serialized, .blocking, .notSanitized("a process for each system call"))
struct PresenterMoveSweepTests {
  private let seed = TestRun.seed

  private func some(_ calls: Range<Int>, of few: Int) -> [Int] {
    var random = SeededRandom(seed: seed)
    if TestRun.isLong { return Array(calls) }
    return Array(calls.shuffled(using: &random).prefix(few))
  }

  private func calls(_ folder: TemporaryDirectory) throws -> Int {
    try folder.read("trace").split(separator: "\n").count
  }

  // MARK: The mover

  /// A process that moves `a` to `b`, and a presenter of `a` in this process.
  private struct Run {
    let scene: FileScene
    let mover: Running
    let heard = Heard<String>()
    let subscription: Subscription

    init(_ environment: String) throws {
      scene = try FileScene()
      try scene.folder.write("", to: "files/a")
      var presenter = Coordinator.Presenter()
      let (heard, top) = (heard, scene.path("").utf8.count)
      presenter.didChange = { heard.add("changed \($0.path.dropping(bytes: top))") }
      presenter.didMove = { heard.add("moved to \($0.to.dropping(bytes: top))") }
      subscription = try scene.another().present(scene.path("a"), as: presenter)
      mover = try Running(
        .moveInside(scene.path("a"), to: scene.path("b")),
        environment: ["WORMHOLE_ROOT=\(scene.folder.path)/groups", environment])
    }

    /// The names under which the file is presented.
    func places() throws -> [String] {
      let room = try scene.arbiters.room(for: AccessPath(scene.path("a")))
      return try room.everyPresenter().values.flatMap { $0.paths.map { UserPath($0.text).name } }
    }
  }

  private func countMoverCalls() throws -> Int {
    let folder = try TemporaryDirectory()
    let run = try Run("WORMHOLE_FAULT_TRACE=\(folder.path)/trace")
    #expect(try run.mover.outcome().output == "moved\ndone\n")
    run.subscription.stop()
    return try calls(folder)
  }

  /// Later accesses get in.
  ///
  /// The presenter follows the move, or is notified of a change if the mover died before it could
  /// report the move.
  @Test(arguments: ["kill", "stop"]) func theMover(_ fault: String) throws {
    let count = try countMoverCalls()
    #expect(count > 30)
    for point in some(1..<count + 1, of: 2) {
      let place: Comment = "\(fault) before call \(point) seed \(seed)"
      let run = try Run("WORMHOLE_FAULTS=any@\(point):before:\(fault)")
      try eventually("it stops or ends") {
        try run.mover.hasEnded || Processes.isStopped(run.mover.child.process)
      }
      let other = run.scene.another(lease: .milliseconds(50))
      for name in ["a", "b"] {
        try other.write(run.scene.path(name), takeOverAfter: .milliseconds(50)) { _ in }
      }
      let output = try run.mover.waitOrGo()
      if fault == "stop" { #expect(output.hasPrefix("moved\n"), place) }
      let isMoved = try run.scene.read("b") != nil
      try eventually("it knows, \(place)") {
        guard isMoved else { return try run.places() == ["a"] }
        let follows = try run.places() == ["b"] && run.heard.all.contains("moved to b")
        return follows || !output.hasPrefix("moved\n") && run.heard.all.contains("changed a")
      }
      run.subscription.stop()
      try other.write(run.scene.path("c")) { _ in }
      #expect(try run.scene.leftovers() == [], place)
    }
  }

  // MARK: The presenter

  private func presenting(_ scene: FileScene, _ environment: String) throws -> Running {
    try Running(
      .present(scene.path("a"), .plainly),
      environment: ["WORMHOLE_ROOT=\(scene.folder.path)/groups", environment])
  }

  private func move(_ scene: FileScene) throws {
    try scene.another().access([.writing(scene.path("a")), .writing(scene.path("b"))]) { access in
      try scene.folder.descriptor.rename("files/a", to: scene.folder.descriptor, "files/b")
      try access.moved(access.paths[0], to: access.paths[1])
    }
  }

  /// The numbers of the calls that the presenter makes for a move.
  private func countPresenterCalls() throws -> Range<Int> {
    let (folder, scene) = (try TemporaryDirectory(), try FileScene())
    try scene.folder.write("", to: "files/a")
    let peer = try presenting(scene, "WORMHOLE_FAULT_TRACE=\(folder.path)/trace")
    try eventually("it presents") { try peer.output == "presenting\n" }
    let first = try calls(folder)
    try move(scene)
    try eventually("it is told") { try peer.output.contains("resumed\n") }
    return try first + 1..<calls(folder)
  }

  /// The mover is held up for no longer than its wait for presenters, and a presenter that resumes
  /// follows the move.
  @Test(arguments: ["kill", "stop"]) func thePresenter(_ fault: String) throws {
    let drawn = try some(countPresenterCalls(), of: 10)
    var disturbed = 0
    for point in drawn where TestRun.isLong || disturbed < 2 {
      let place: Comment = "\(fault) before call \(point) seed \(seed)"
      let scene = try FileScene()
      try scene.folder.write("", to: "files/a")
      let peer = try presenting(scene, "WORMHOLE_FAULTS=any@\(point):before:\(fault)")
      try eventually("it presents, or does not come to that") {
        try peer.output.hasPrefix("presenting\n") || peer.hasEnded
          || Processes.isStopped(peer.child.process)
      }
      // The threads make calls of their own, so the fault may come before.
      guard try peer.output.hasPrefix("presenting\n") else {
        if !peer.hasEnded { try peer.child.send(.kill) }
        _ = try peer.outcome()
        continue
      }
      disturbed += 1
      let (start, bystander) = (Instant.now, try Bystander())
      try move(scene)
      // The presenter is asked before the access, and notified of the move during the access.
      let longest = Coordinator.Presenter.responseTimeout * 2 + .milliseconds(500)
      #expect(Instant.now - start < longest + bystander.allowance(), place)
      if fault == "kill" {
        // The threads make calls of their own, so the last points may not be reached.
        if !peer.hasEnded { try peer.child.send(.kill) }
        _ = try peer.outcome()
        try scene.another().write(scene.path("b")) { _ in }
        #expect((try? Descriptor.status(ofPath: scene.place + "/presenters")) == nil, place)
        continue
      }
      if try Processes.isStopped(peer.child.process) { try peer.child.send(.go) }
      try eventually("it follows, \(place)") {
        if try Processes.isStopped(peer.child.process) { try peer.child.send(.go) }
        guard try peer.output.contains("moved . to \(scene.path("b"))\n") else { return false }
        try scene.another().read(scene.path("b")) { _ in }
        return try peer.output.contains("asked before reading\n")
      }
    }
    #expect(disturbed >= 2, "of \(drawn.count), seed \(seed)")
  }
}
