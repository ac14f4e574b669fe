import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Hidden directories, and new files that another program takes away while their owner puts them
/// into place.
@Suite(.blocking) struct HiddenFileTests {
  private let folder: TemporaryDirectory
  private let name = AccessName(stamp: 1, process: "0123456789abcdef", number: 1)
  private let maker = HiddenDirectory.Maker(
    container: "c", identity: "fedcba9876543210", owner: Processes.effectiveUser)

  init() throws { folder = try TemporaryDirectory() }

  private var target: AccessPath { AccessPath(folder.path + "/target") }
  private var path: String { HiddenFile.path(beside: target, name, 0) }
  private var made: String { "\(path)/\(maker.identity)" }

  /// As another process removes it.
  private func remove(most: Int = 100_000) throws -> Bool {
    var removal = TreeRemoval(most: most, owner: nil)
    return try HiddenDirectory.open(path, by: maker)?.remove(&removal) { false } ?? true
  }

  private func open(_ path: String) throws -> Descriptor {
    try Descriptor.open(path: path, [.readOnly, .directory])
  }

  /// The removal of a directory with its content takes many steps.
  @Test func aDirectoryThatIsBeingRemovedIsNotPutIntoPlace() throws {
    try folder.descriptor.makeDirectory("target", mode: 0o700)
    try folder.write("", to: "target/old")
    let hidden = try HiddenFile(beside: target, at: path, by: maker)
    try open(made).makeDirectory("new", mode: 0o700)
    let new = try open(hidden.path)
    for number in 1...3 { _ = try new.open("part-\(number)", [.writeOnly, .create], mode: 0o600) }
    let isRemoved = Monitor<Bool?>(nil)
    let thread = try Thread("other") {
      let rule = FaultRule(.unlink, path: "part-", moment: .after, .delay(milliseconds: 500))
      FaultPoints.with([rule]) {
        let isWhole = try? remove()
        isRemoved.withLock { $0 = isWhole }
      }
    }
    try eventually("it is being removed") { try new.names().count < 3 }
    let outcome = try hidden.exchange()
    thread.join()
    #expect(outcome != .exchanged)
    #expect(try open(folder.path + "/target").names() == ["old"])
    #expect(isRemoved.withLock { $0 } == true)
    #expect(try folder.descriptor.names() == ["target"])
    #expect(try hidden.exchange() == .superseded)
  }

  /// Neither its name nor the empty directory keeps its owner from making another file in it.
  @Test func onlyARemovedDirectoryIsFenced() throws {
    try folder.write("old", to: "target")
    let hidden = try HiddenFile(beside: target, at: path, by: maker)
    let own = try open(made)
    func make() throws { _ = try own.open("new", .writeOnlyNew, mode: 0o600) }
    try make()
    try folder.descriptor.rename(UserPath(path).name, to: folder.descriptor, "away")
    #expect(try hidden.exchange() == .exchanged)
    try folder.descriptor.rename("away", to: folder.descriptor, UserPath(path).name)
    let other = try #require(try HiddenDirectory.open(path, by: maker))
    try other.fence { false }
    #expect(throws: Errno.noSuchFile) { try make() }
    #expect(try hidden.exchange() == .superseded)
    #expect(try remove())
    #expect(try folder.descriptor.names() == ["target"])
  }

  /// Of some thousands of files each is moved out, and its owner may go on making more.
  @Test func manyFilesAreMovedOut() throws {
    let hidden = try HiddenFile(beside: target, at: path, by: maker)
    let own = try open(made)
    for number in 1...2500 {
      _ = try own.open("\(number)", [.writeOnly, .create], mode: 0o600)
    }
    #expect(try !remove(most: 1000))
    #expect(try hidden.exchange() == .superseded)
    #expect(try open(path).names().count == 1501)
    #expect(try remove())
    #expect(try folder.descriptor.names() == [])
  }

  /// The access's file stays as long as its directory, which no process would find otherwise.
  @Test func aDirectoryThatIsRemovedInPartIsRemovedLater() throws {
    let room = try AccessDirectory(Container.open(folder.path + "/c", options: .testing()))
    let claim = AccessClaim([.init(target, writes: true)], purpose: "")
    var request = AccessRequest(claim, subject: "target")
    request.replaced = [target]
    let access = AccessExecutor(room, request, .unlimited)
    try access.begin()
    let (name, home) = try (#require(access.name), #require(access.home))
    let new = UserPath(try #require(access.newPaths.first))
    let own = try open(new.directory)
    for number in 1...20 { _ = try own.open("\(number)", [.writeOnly, .create], mode: 0o600) }
    #expect(try room.discard(name, in: home, most: 5) == .unfinished)
    #expect(try room.passedNames(in: home) == [name])
    room.leave(name)
    room.removeLeft(in: home, most: 5)
    #expect(try room.passedNames(in: home) == [name])
    room.removeLeft(in: home)
    #expect(try room.passedNames(in: home) == [])
    #expect(try folder.descriptor.names() == ["c"])
    #expect(throws: WormholeError.self) { try access.end(commits: false) }
  }

  /// A directory that another user fills is left in the end, and so is a directory that is too
  /// deep.
  @Test func whatIsRemovedHasBounds() throws {
    _ = try HiddenFile(beside: target, at: path, by: maker)
    var deep = made
    for _ in 0..<70 {
      deep += "/d"
      try Descriptor.makeDirectory(path: deep, mode: 0o700)
    }
    #expect(throws: HiddenDirectory.Trouble.self) { try remove() }
    #expect(try open(path).names().count == 2)
    // A program that removes the upper part makes a way for other programs.
    let aside = try #require(try open(path).names().first { $0.hasPrefix(maker.identity) })
    let inner = "\(path)/\(aside)" + String(repeating: "/d", count: 50)
    try open(inner).rename("d", to: folder.descriptor, "rest")
    #expect(try remove())
    #expect(try folder.descriptor.names() == ["rest"])
  }

  @Test func aDirectoryThatIsFilledMeanwhileEndsTheRemoval() throws {
    _ = try HiddenFile(beside: target, at: path, by: maker)
    try open(made).makeDirectory("filled", mode: 0o700)
    let filled = try open(made + "/filled")
    let isOver = Monitor(false)
    let thread = try Thread("filling") {
      var count = 0
      while !isOver.withLock({ $0 }) {
        count += 1
        guard (try? filled.open("\(count)", [.writeOnly, .create], mode: 0o600)) != nil else {
          return
        }
      }
    }
    defer {
      isOver.withLock { $0 = true }
      thread.join()
    }
    try eventually("it is filled") { try filled.names().count > 100 }
    // Whether its filler was fast enough or not.
    _ = try remove(most: 1000)
  }

  /// Right after the hidden directory was made, another program puts a different directory of the
  /// same user in its place.
  @Test func whatTakesItsPlaceWhileItIsMadeLosesNothing() throws {
    try folder.descriptor.makeDirectory("private", mode: 0o700)
    try folder.write("mine", to: "private/diary")
    try folder.write("old", to: "target")
    let name = UserPath(path).name
    let isSwapped = Monitor(false)
    let swapper = try Thread("swapping") {
      while (try? folder.descriptor.rename("private", to: folder.descriptor, name, .exchanging))
        == nil
      { Processes.yield() }
      isSwapped.withLock { $0 = true }
    }
    let rule = FaultRule(.mkdir, path: name, moment: .after, .delay(milliseconds: 300))
    try FaultPoints.with([rule]) {
      let hidden = try HiddenFile(beside: target, at: path, by: maker)
      swapper.join()
      #expect(isSwapped.withLock { $0 })
      try Descriptor.open(path: hidden.path, .writeOnlyNew, mode: 0o600).write("new")
      #expect(try hidden.exchange() == .exchanged)
      // The maker tries to remove the directory, and so does a process that finds it.
      #expect(throws: HiddenDirectory.Trouble.self) { try hidden.remove() }
      #expect(throws: HiddenDirectory.Trouble.self) { try remove() }
    }
    #expect(try folder.read("target") == "new")
    #expect(try folder.read("\(name)/diary") == "mine")
    #expect(try open(path).names().sorted() == ["\(maker.container).\(maker.identity)", "diary"])
  }

  /// A killed process leaves the hidden directory without the marker only while the directory is
  /// empty.
  @Test func anEmptyOneNeedsNoMarker() throws {
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    #expect(try remove())
    #expect(try folder.descriptor.names() == [])
    #expect(try remove())
  }

  @Test(arguments: [
    (".wormhole-0000000000000001,0123456789abcdef,1.0", true), ("sub/x.0", false),
    (".wormhole-0000000000000001,0123456789abcdef,1.00", false),
    (".wormhole-0000000000000001,0123456789abcdef,1.-1", false),
    (".wormhole-0000000000000001,0123456789abcdef,1.", false),
    (".wormhole-0000000000000001,0123456789abcdef,2.0", false),
    ("sub/.wormhole-0000000000000001,0123456789abcdef,1.0", false),
    ("../.wormhole-0000000000000001,0123456789abcdef,1.0", false),
  ])
  func onlyBesideWhatIsWrittenIsItsPlace(_ path: String, _ isPlace: Bool) {
    let parts = [
      ClaimedPath(target, writes: true),
      ClaimedPath(AccessPath("\(folder.path)/read/file"), writes: false),
    ]
    let claim = AccessClaim(parts, purpose: "")
    #expect(HiddenFile.isPath("\(folder.path)/\(path)", of: name, claim) == isPlace)
    #expect(!HiddenFile.isPath("\(folder.path)/read/\(path)", of: name, claim))
  }

  @Test func stampsGoOnAndStayNearTheClock() {
    let hour = AccessName.farthest
    #expect(AccessName.stamp(above: 0, now: 5) == 5)
    #expect(AccessName.stamp(above: 5, now: 5) == 6)
    #expect(AccessName.stamp(above: hour, now: 5) == hour + 1)
    #expect(AccessName.stamp(above: hour + 5, now: 5) == hour + 5)
  }
}
