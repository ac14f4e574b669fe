import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Limits and refusals of single steps, and calls that a step must not make.
@Suite(.blocking) struct SmallStepTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  private func marker() throws -> Descriptor {
    try Descriptor.open(path: container.path("container.plist"), [.readWrite])
  }

  @Test func aMarkerThatAllUsersMayWriteToIsRefused() throws {
    let path = container.path
    try marker().setMode(0o602)
    let error = try failure { _ = try Container.open(path, options: .testing()) }
    #expect(error.code == .refused)
    #expect(error.hint == "chmod o-w '\(path)/container.plist'")
    try marker().setMode(0o600)
    _ = try Container.open(path, options: .testing())
  }

  @Test func aMarkerThatIsTooLargeIsNotRead() throws {
    let path = container.path
    for (size, code) in [(1 << 16, WormholeError.Code.damaged), ((1 << 16) + 1, .refused)] {
      try marker().truncate(to: size)
      let error = try failure { _ = try Container.open(path, options: .testing()) }
      #expect(error.code == code, "\(size)")
    }
  }

  /// The first change after another directory has the name opens all files of the lock again.
  @Test func aNewNameIsLookedAtByOneChange() throws {
    let slot = try container.slot(.channels, "n")
    func opens() throws -> Int {
      let calls = try FaultPoints.with { _ = try slot.add() }
      return calls.count { $0.hasPrefix("open ") }
    }
    for _ in 0..<2 { _ = try opens() }
    slot.noteNewName()
    let (first, second) = (try opens(), try opens())
    #expect(first > second)
  }

  /// Another thread opens the directory in the middle of the call.
  @Test func twoCallersOfADirectoryGetOneObject() throws {
    let directories = OpenDirectories(count: 1)
    let path = container.path
    var other: OpenDirectory?
    let own = try directories.directory(0) { () throws(Errno) -> Descriptor in
      other = try directories.directory(0) { () throws(Errno) -> Descriptor in
        try Descriptor.open(path: path, [.readOnly, .directory])
      }
      return try Descriptor.open(path: path, [.readOnly, .directory])
    }
    #expect(own === other)
    #expect(directories.known(0) === own)
  }

  /// The creation of the file is the notice; a touch would be a second one.
  @Test func theFirstPostTouchesNothing() throws {
    for touches in [0, 1, 1] {
      let calls = try FaultPoints.with { try container.post("n") }
      #expect(calls.count { $0.hasPrefix("utimensat") } == touches, "\(calls)")
    }
  }

  /// The next thread of the process uses the same open files as the thread that unlocks.
  @Test func theTurnOfAnAccessIsGivenBackAfterTheUnlock() throws {
    let room = try AccessDirectory(container)
    func access(_ name: String) -> AccessExecutor {
      let claim = AccessClaim([.init(AccessPath("/\(name)"), writes: true)], purpose: name)
      return AccessExecutor(room, AccessRequest(claim, subject: name), .unlimited)
    }
    let (first, second, pause) = (access("a"), access("b"), FaultPause())
    try first.begin()
    try first.end(commits: false)
    // The first call takes the lock.
    let rule = FaultRule(.flock, path: "coordination/lock/1", number: 2, .pause(pause))
    let thread = try Thread("second") {
      FaultPoints.with([rule]) { try? second.begin() }
    }
    try eventually("it is about to unlock") { pause.isReached }
    let isFree = room.slot.turns.tryTake()
    if isFree { room.slot.turns.giveBack() }
    pause.open()
    thread.join()
    #expect(!isFree)
    try second.end(commits: false)
  }

  /// Each waiting value keeps a file open.
  @Test func aSaverTakesOneMoreRequestOnlyForAWaitingValue() throws {
    let saver = ValueSaver()
    let slots = try (0...32).map { try container.slot(.channels, "\($0)") }
    for slot in slots.dropLast() { #expect(saver.add(slot, due: .distantFuture)) }
    #expect(!saver.add(slots[32], due: .distantFuture))
    #expect(saver.add(slots[0], due: .distantFuture))
    #expect(!saver.add(slots[32], due: .distantFuture))
    saver.finish(container)
    #expect(saver.add(slots[32], due: .distantFuture))
    saver.finish(container)
  }

  /// Only a file whose size the kernel does not report is read without a size.
  @Test func anOrdinaryFileIsNotCopiedBeyondItsSize() throws {
    for content in ["", "added"] {
      try folder.write(content, to: "source")
      let source = try Descriptor.open(path: folder.path + "/source", [.readOnly])
      let target = try folder.descriptor.open(
        "target\(content)", [.readWrite, .create], mode: 0o600)
      let copied = try FileCopy.copyUnsized(source, to: target) { _ in true }
      #expect(copied?.size == nil)
      #expect(try target.status().size == 0)
    }
  }
}
