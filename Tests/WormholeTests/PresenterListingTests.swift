import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The presenters are listed again whenever the list may have changed, and only in this case.
@Suite(.blocking) struct PresenterListingTests {
  private let scene: FileScene
  /// The time that processes of the test see, in nanoseconds since 1970; nil for the real clock.
  private let clock = Monitor<Int64?>(nil)

  init() throws { scene = try FileScene() }

  /// The accesses of one process, with the clock that the test sets.
  private func room() throws -> AccessDirectory {
    var options = ContainerOptions.testing()
    options.environment.sinceEpoch = { [clock] in clock.withLock { $0 } ?? Clocks.sinceEpoch }
    let arbiters = Arbiters(options, root: scene.folder.path + "/groups")
    return try arbiters.room(for: AccessPath(scene.path("a")))
  }

  private func present(in room: AccessDirectory) throws -> PresenterName {
    let entry = PresenterEntry(
      [AccessPath(scene.path("a"))], purpose: "x", guest: "0123456789abcdef", mindsReaders: true)
    return try room.present(entry) { _ in }
  }

  /// Sets the clock to so much time after the last change of the directory.
  private func letPass(_ time: Duration) throws {
    let changed = try Descriptor.status(ofPath: scene.place + "/presenters").changed
    clock.withLock { $0 = changed + time.inNanoseconds }
  }

  private var noListing: FaultRule {
    FaultRule(.open, path: "presenters", persistent: true, .fail(.inputOutput))
  }

  /// The kernel's clock for changes stands still for milliseconds.
  @Test func whoComesRightAfterALookIsFound() throws {
    let (looking, presenting) = (try room(), try room())
    var all: Set<PresenterName> = []
    for _ in 0..<50 {
      all.insert(try present(in: presenting))
      #expect(try Set(looking.everyPresenter().keys) == all)
    }
    for name in all {
      presenting.unpresent(name)
      all.remove(name)
      #expect(try Set(looking.everyPresenter().keys) == all)
    }
  }

  @Test func whatHasNotChangedForASecondIsNotListedAgain() throws {
    let (looking, presenting) = (try room(), try room())
    var all: Set<PresenterName> = [try present(in: presenting)]
    func look() throws -> Set<PresenterName> { try Set(looking.everyPresenter().keys) }
    try letPass(.nanoseconds(999_999_999))
    #expect(try look() == all)
    try FaultPoints.with([noListing]) { () throws in
      #expect(throws: Errno.inputOutput) { try look() }
    }
    try letPass(.seconds(1))
    #expect(try look() == all)
    try FaultPoints.with([noListing]) { () throws in
      #expect(try look() == all)
      #expect(try look() == all)
    }
    all.insert(try present(in: presenting))
    #expect(try look() == all)
    for name in all { presenting.unpresent(name) }
    #expect(try look().isEmpty)
  }

  /// A file that could not be read is read the next time, with or without a change.
  @Test func whatCouldNotBeReadIsReadTheNextTime() throws {
    let (looking, presenting) = (try room(), try room())
    let name = try present(in: presenting)
    try letPass(.seconds(1))
    let rule = FaultRule(.open, path: name.text, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) { () throws in
      #expect(try looking.everyPresenter().isEmpty)
    }
    #expect(try looking.everyPresenter().keys.map(\.text) == [name.text])
  }

  /// The last presenter may remove the directory before the file of the next one is in it.
  @Test func aPresenterThatBeginsWhileTheLastOneEndsIsListed() throws {
    let presenting = try room()
    let rule = FaultRule(.rename, path: "presenters", .fail(.noSuchFile))
    var name: PresenterName?
    try FaultPoints.with([rule]) { () throws in name = try present(in: presenting) }
    #expect(try room().everyPresenter().keys.map(\.text) == [try #require(name).text])
  }

  /// A clock that was set back shows no changes, so the directory is listed.
  @Test func aClockThatIsSetBackHasAllListed() throws {
    let (looking, presenting) = (try room(), try room())
    let name = try present(in: presenting)
    try letPass(.seconds(-3600))
    #expect(try looking.everyPresenter().keys.map(\.text) == [name.text])
    try FaultPoints.with([noListing]) { () throws in
      #expect(throws: Errno.inputOutput) { try looking.everyPresenter() }
    }
  }
}
