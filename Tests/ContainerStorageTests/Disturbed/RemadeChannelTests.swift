import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Channels that another process removes and makes again while a process has the old directory
/// open.
@Suite(.blocking) struct RemadeChannelTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot
  /// As another process uses the channel.
  private let other: Slot
  private let home = ChannelHome(machine: "away", version: 0)

  init() throws {
    (folder, container, slot) = try Container.forTest()
    other = try Container.open(container.path, options: .testing()).slot(.channels, "n")
    // This process opens the directory, and makes no change in it.
    try other.add()
    #expect(try slot.home() == nil)
    _ = try other.remove("remove channel") { _ in (try BinaryEncoder().encode(0), 1) }
  }

  /// Only the file beside the value tells that a channel without a value is a copy.
  @Test func theHomeOfTheNewChannelIsFound() throws {
    try other.setHome(home)
    #expect(try slot.home()?.machine == "away")
  }

  @Test func theHomeOfTheNewChannelIsRemoved() throws {
    try other.setHome(home)
    try slot.removeHome()
    #expect(try other.home() == nil)
    #expect(try slot.home() == nil)
  }

  @Test func withoutANewChannelThereIsNoHome() throws {
    try slot.removeHome()
    #expect(try slot.home() == nil)
    #expect(try slot.readKept() == nil)
  }

  @Test func thePreviousValueOfTheNewChannelIsRead() throws {
    for _ in 1...2 { try other.add(durability: .power) }
    let kept = try #require(try slot.readKept())
    #expect(try BinaryDecoder().decode(Int.self, from: kept) == 1)
  }
}
