import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The file that was committed last stays open.
///
/// It represents its name only as long as the name leads to this very file.
@Suite(.blocking) struct CommittedFileTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot
  /// The same slot, as another process would have it.
  private let other: Slot

  init() throws {
    (folder, container, slot) = try Container.forTest()
    other = try Container.open(container.path, options: .testing()).slot(.channels, "n")
  }

  /// No process can open the value while the body runs.
  private func unreadable(_ body: () throws -> Void) rethrows {
    let rule = FaultRule(.open, path: "n/value.plist", persistent: true, .fail(.inputOutput))
    _ = try FaultPoints.with([rule], body)
  }

  @Test func whatWasCommittedLastIsNotReadAgain() throws {
    try slot.add(5)
    var sums: [Int] = []
    try unreadable {
      sums = [try slot.add(), try slot.add()]
      #expect(throws: WormholeError.self) { try other.add() }
    }
    #expect(sums == [6, 7])
    #expect(try other.number() == 7)
  }

  @Test func whatOthersHaveCommittedIsReadAnew() throws {
    for round in 0..<10 {
      #expect(try slot.add() == 3 * round + 1)
      #expect(try other.add() == 3 * round + 2)
      #expect(try slot.add() == 3 * round + 3)
    }
  }

  /// No program should write into the file, but an editor may.
  @Test func whatWasWrittenIntoTheFileIsRead() throws {
    try slot.add(5)
    let bytes = try BinaryEncoder().encode(6)
    let file = try Descriptor.open(path: container.path + "/channels/n/value.plist", [.readWrite])
    #expect(try file.status().size == bytes.count, "of the same size")
    let old = try file.status().modified
    try eventually("the clock of the file system goes on") {
      try file.writeFully(bytes.span.bytes, at: 0)
      return try file.status().modified != old
    }
    #expect(try slot.add() == 7)
  }

  @Test func aFileThatWasTakenAwayIsMissed() throws {
    try slot.add(5)
    let directory = try Descriptor.open(path: container.path + "/channels/n", [.readOnly])
    try directory.unlink("value.plist")
    #expect(try slot.add() == 1)
  }

  /// A value that another process has replaced takes up space only until the next change.
  @Test func whatWasReplacedIsClosed() throws {
    try slot.add()  // The first is synced, and kept as such.
    try slot.add()
    try other.add()
    #expect(try removedFilesOpen() == 1)
    try slot.add()
    try other.add()
    try slot.change("look") { _ in .none }
    #expect(try removedFilesOpen() == 0)
  }

  @Test func aLargeValueIsNotKeptOpen() throws {
    let large = try BinaryEncoder().encode(Data(repeating: 1, count: 20_000))
    try slot.change("put") { _ in .put(large) }
    try other.change("put") { _ in .put(large) }
    #expect(try removedFilesOpen() == 0)
  }

  /// The open file would occupy its disk space after a replacement.
  @Test func aLargeValueThatIsReadIsNotKeptOpen() throws {
    let extra = try BinaryEncoder().encode(Data(repeating: 1, count: 16_000)).count - 16_000
    for (size, staysOpen) in [(16_384, true), (16_385, false)] {
      let value = try BinaryEncoder().encode(Data(repeating: 1, count: size - extra))
      #expect(value.count == size)
      try other.change("put") { _ in .put(value) }
      let read = try slot.readKeepingOpen()
      guard case .value(let bytes, recovered: false) = read.content else {
        Issue.record("another content: \(read.content)")
        return
      }
      #expect(bytes.count == size)
      #expect((read.file != nil) == staysOpen, "\(size) bytes")
    }
  }

  private func removedFilesOpen() throws -> Int {
    try Processes.openFiles(below: container.path).count { $0.hasSuffix("(deleted)") }
  }
}
