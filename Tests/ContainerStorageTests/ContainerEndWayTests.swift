import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// How an open container ceases to be the one at its path.
@Suite(.blocking) struct ContainerEndWayTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let marker = ContainerMarker.fileName

  init() throws { (folder, container) = try Container.forTest() }

  private var way: ContainerEnd.Reason? { container.end(at: container.path)?.way }

  @Test func itIsMovedAndThenReplaced() throws {
    #expect(way == nil)
    let parent = try Descriptor.open(path: folder.path, .readOnlyDirectory)
    try parent.rename("c", to: parent, "d")
    #expect(way == .moved)
    _ = try Container.open(container.path, options: .testing())
    #expect(way == .replaced)
  }

  @Test func aFileInPlaceOfADirectoryAboveMeansThatItWasMoved() throws {
    let parent = try Descriptor.open(path: folder.path, .readOnlyDirectory)
    try parent.makeDirectory("p", mode: 0o700)
    let inner = try Container.open("\(folder.path)/p/c", options: .testing())
    try parent.rename("p", to: parent, "q")
    _ = try parent.open("p", .writeOnlyNew, mode: 0o600)
    #expect(inner.end(at: inner.path)?.way == .moved)
  }

  @Test func itsMarkerDecides() throws {
    let other = try Container.open(folder.path + "/o", options: .testing())
    let bytes = try Descriptor.open(path: "\(other.path)/\(marker)", [.readOnly]).contents()
    let path = "\(container.path)/\(marker)"
    try Descriptor.open(path: path, [.writeOnly, .truncate]).write(bytes)
    #expect(way == .replaced)
    // Damage of the marker is no end.
    try Descriptor.open(path: path, [.writeOnly, .truncate]).write([1, 2, 3])
    #expect(way == nil)
    try Descriptor.open(path: container.path, .readOnlyDirectory).unlink(marker)
    #expect(way == .removed)
  }
}
