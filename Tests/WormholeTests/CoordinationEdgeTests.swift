import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Limits of coordination: the lower bound of a takeover, the order of accesses when clocks differ,
/// and the cleanup in one container if another container fails.
@Suite(.blocking) struct CoordinationEdgeTests {
  private let scene: FileScene

  init() throws { scene = try FileScene(lease: .milliseconds(50)) }

  // MARK: Suspended holders

  @Test func aSuspendedHolderIsNotTakenOverTooEarly() throws {
    let begin = Instant.now
    let peer = try scene.stopped(.write, "a")
    try scene.another().write(scene.path("a"), takeOverAfter: .milliseconds(1500)) { _ in }
    #expect(Instant.now - begin >= .milliseconds(1500))
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\nsuperseded\n")
  }

  /// The heartbeat must have stopped for a whole lease.
  @Test func aHolderIsNotReportedAsSuspendedTooEarly() throws {
    let peer = try scene.stopped(.write, "a")
    let begin = Instant.now
    let error = try failure {
      try scene.another(lease: .seconds(1)).write(scene.path("a")) { _ in }
    }
    #expect(error.code == .stopped)
    #expect(Instant.now - begin >= .seconds(1))
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\ndone\n")
  }

  /// The heartbeats of all blockers are observed during the wait for the first blocker.
  @Test func severalSuspendedHoldersAreTakenOverTogether() throws {
    let peers = try (0..<4).map { _ in try scene.stopped(.read, "a") }
    let least = try Bystander.leastOfThree(within: .seconds(2)) {
      try Bystander.time {
        try scene.another().write(scene.path("a"), takeOverAfter: .seconds(1)) { _ in }
      }
    }
    #expect(least < .seconds(2))
    for peer in peers { try peer.child.send(.kill) }
    for peer in peers { _ = try peer.outcome() }
  }

  /// The holder has written nothing, and its entry remains, because the overtaking process died.
  @Test func anOvertakenHolderWithoutFileIsSupersededAndNotNotFound() throws {
    try scene.folder.write("old", to: "files/a")
    let peer = try scene.peer(
      .replace, scene.path("a"), .nothing,
      environment: ["WORMHOLE_FAULTS=rename~files/a@1:before:stop"])
    try peer.waitUntilStopped()
    let killed = try scene.peer(
      .write, scene.path("a"), .nothing, takeOverAfterMilliseconds: 50,
      environment: ["WORMHOLE_FAULTS=rename~overtaken@1:after:kill"])
    #expect(try killed.outcome().status == .signalled(9))
    try peer.child.send(.go)
    #expect(try peer.outcome().output == "inside\nsuperseded\n")
    // A holder that was not overtaken gets the error that its file is missing.
    let alone = try scene.peer(.replace, scene.path("a"), .nothing)
    #expect(try alone.outcome().output == "inside\nnotFound\n")
    #expect(try scene.read("a") == "old")
  }

  /// The first conflicting access removes the entry of a process that died while it waited.
  @Test func aDeadWaitersEntryIsRemoved() throws {
    try scene.whileSomebody(.writing(scene.path("a"))) {
      let waiter = try scene.peer(.write, scene.path("a"), .nothing)
      try scene.waitForWaiting(1)
      try waiter.child.send(.kill)
      #expect(try waiter.outcome().status == .signalled(9))
    }
    #expect(try scene.names(in: .waiting).count == 1)
    try scene.another().write(scene.path("a")) { _ in }
    #expect(try scene.leftovers() == [])
  }

  // MARK: Order

  /// The clocks of two processes may differ, for example in two time namespaces.
  @Test func accessesKeepTheirOrderWhenClocksDiffer() throws {
    func arbiters(_ change: (inout ContainerOptions) -> Void) -> Arbiters {
      var options = ContainerOptions.testing(lease: .seconds(60))
      change(&options)
      return Arbiters(options, root: scene.folder.path + "/groups")
    }
    let ahead = arbiters { options in
      let clock = options.environment.sinceBoot
      options.environment.sinceBoot = { clock() + 1_800_000_000_000 }
    }
    let right = arbiters { _ in }
    let path = AccessPath(scene.path("a"))
    func executor(_ arbiters: Arbiters, _ purpose: String) throws -> AccessExecutor {
      let part = ClaimedPath(path, writes: true)
      return AccessExecutor(
        try arbiters.room(for: path),
        AccessRequest(AccessClaim([part], purpose: purpose), subject: "a"), .unlimited)
    }
    let all = [
      try executor(ahead, "first"), try executor(ahead, "second"), try executor(right, "third"),
    ]
    var names: [String] = []
    for (index, executor) in all.enumerated() {
      #expect(try executor.arrive() == (index == 0))
      // A name begins with the stamp.
      let present = try [AccessPlace.waiting, .running].flatMap(scene.names).sorted()
      #expect(present.count == names.count + 1 && present.starts(with: names))
      names = present
    }
    for (index, executor) in all.enumerated() {
      for later in all[index...].dropFirst() { #expect(try !later.mayRun()) }
      try executor.begin()
      try executor.end(commits: false)
    }
    #expect(try scene.leftovers() == [])
  }

  // MARK: Failures

  /// The result does not depend on the order of the two containers.
  @Test(arguments: [0, 1]) func anAccessThatFailsInOneContainerIsReleasedInTheOther(_ index: Int)
    throws
  {
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    let paths = [scene.path("a"), "\(scene.folder.path)/groups/cinema/b"]
    try scene.whileSomebody(.writing(paths[index])) {
      let error = try failure {
        try scene.another().access(paths.map { .writing($0) }, within: .milliseconds(50)) { _ in
          _ = Issue.record("the access ran")
        }
      }
      #expect(error.code == .timedOut)
      #expect(try scene.isFree(.writing(paths[1 - index])))
    }
    try scene.another().access(paths.map { .writing($0) }) { _ in }
  }

  @Test(.notSanitized("on one thread")) func anAccessWithTooManyPathsIsRefused() throws {
    let name = String(repeating: "x", count: 200)
    let intents = (0..<10_000).map {
      Coordinator.Intent.reading(scene.path("\(name)\($0)"))
    }
    let error = try failure {
      try scene.another().access(intents) { _ in _ = Issue.record("the access ran") }
    }
    #expect(error.code == .tooLarge)
    #expect(try scene.leftovers() == [])
    try scene.another().write(scene.path("a")) { _ in }
  }

  // MARK: Presenters

  /// An access does not wait for the reply of a presenter that has ended.
  @Test func aPresenterThatEndsWhileItIsAskedDelaysNoAccess() throws {
    let isAsked = Monitor(false)
    var presenter = Coordinator.Presenter()
    // The presenter never replies, and a released closure would reply for it.
    let held = Monitor<[@Sendable () -> Void]>([])
    presenter.relinquish = { _, goOn in
      held.withLock { $0.append { goOn {} } }
      isAsked.signal { $0 = true }
    }
    let bound = Coordinator.Presenter.responseTimeout / 2
    let time = try Bystander.leastOfThree(within: bound) {
      isAsked.withLock { $0 = false }
      let presenting = try scene.another().present(scene.path("a"), as: presenter)
      let ended = Monitor<Instant?>(nil)
      let writing = try Thread("writing") { [scene] in
        guard (try? scene.another().write(scene.path("a")) { _ in }) != nil else { return }
        ended.withLock { $0 = .now }
      }
      isAsked.wait(until: .now + patience) { $0 ? () : nil }
      let bystander = try Bystander()
      let begin = Instant.now
      presenting.stop()
      writing.join()
      return try #require(ended.withLock { $0 }) - begin - bystander.allowance()
    }
    #expect(time < bound)
  }

  /// A busy presenter is notified of a thousand changes, and once more for all further changes.
  @Test func changesBeyondTheLimitAreNotifiedAsOne() throws {
    let calls = Monitor<[@Sendable () -> Void]>([])
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.path) }
    let file = PresentedFile(presenter, purpose: "mine", scene.arbiters) { call in
      calls.withLock { $0.append(call) }
    }
    let presenting = try file.begin(at: [AccessPath(scene.path("folder"))])
    let paths = (0..<1500).map { scene.path("folder/\($0)") }
    for path in paths {
      file.tell(
        PresenterNews(presenter: 1, access: "none", changed: [path], made: []), as: "somebody")
    }
    for call in calls.withLock({ $0 }) { call() }
    #expect(heard.all == paths.prefix(1000) + [scene.path("folder")])
    presenting.stop()
  }

  /// A change that follows a creation before the notification does not hide the creation.
  @Test func aCreatedFileIsNotifiedAsNewAfterFurtherChanges() throws {
    let calls = Monitor<[@Sendable () -> Void]>([])
    let heard = Heard<Bool>()
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.isNew) }
    let file = PresentedFile(presenter, purpose: "mine", scene.arbiters) { call in
      calls.withLock { $0.append(call) }
    }
    let presenting = try file.begin(at: [AccessPath(scene.path("folder"))])
    let path = scene.path("folder/a")
    for made in [[path], []] {
      file.tell(
        PresenterNews(presenter: 1, access: "none", changed: [path], made: made), as: "somebody")
    }
    for call in calls.withLock({ $0 }) { call() }
    #expect(heard.all == [true])
    presenting.stop()
  }

  /// An access that already reads moves the file: the presenter was asked at the old path.
  @Test func aMovedPresenterIsNotifiedOfTheEndOfEarlierAccesses() throws {
    try scene.folder.write("", to: "files/a")
    let heard = Heard<String>()
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { use, goOn in
      heard.add("\(use)")
      goOn { heard.add("\(use) is over") }
    }
    let presenting = try scene.another().present(scene.path("a"), as: presenter)
    let coordinator = scene.another()
    let reading = Gate()
    let reader = try Thread("reader") { [scene] in
      try? coordinator.read(scene.path("a")) { _ in reading.pass() }
    }
    try reading.waitForSomebody()
    let intents = ["a", "b"].map { Coordinator.Intent.writing(scene.path($0)) }
    // Accesses of the same purpose do not wait for each other.
    try coordinator.access(intents) { [scene] access in
      try scene.folder.descriptor.rename("files/a", to: scene.folder.descriptor, "files/b")
      try access.moved(access.paths[0], to: access.paths[1])
    }
    try heard.wait("the end of the move") { $0.contains("writing is over") }
    #expect(heard.all == ["reading", "writing", "writing is over"])
    reading.open()
    reader.join()
    try heard.wait("the end of the read") { $0.last == "reading is over" }
    presenting.stop()
  }

  /// A presenter that does not run its calls is told of a thousand changes, and of the folder's.
  @Test func furtherPendingChangesAreOneOfTheFolder() throws {
    try scene.folder.descriptor.makeDirectory("files/f", mode: 0o700)
    let (calls, heard) = (Monitor<[@Sendable () -> Void]>([]), Heard<String>())
    var presenter = Coordinator.Presenter()
    presenter.didChange = { heard.add($0.relativePath ?? ".") }
    let file = PresentedFile(presenter, purpose: "another", scene.arbiters) { call in
      calls.withLock { $0.append(call) }
    }
    let subscription = try file.begin(at: AccessPath.resolve(scene.path("f")))
    let changed = (0..<1500).map { scene.path("f/\($0)") }
    file.tell(PresenterNews(presenter: 0, access: "", changed: changed, made: []), as: "")
    let pending = calls.withLock { $0 }
    #expect(pending.count == 1001)
    for call in pending { call() }
    #expect(heard.all == (0..<1000).map(String.init) + ["."])
    subscription.stop()
  }
}
