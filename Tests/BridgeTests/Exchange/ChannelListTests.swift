import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// The files that state what an operator has decided of channels.
@Suite(.blocking) struct ChannelListTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer
  private let list: ChannelList

  init() throws {
    directory = try TemporaryDirectory()
    container = try SharedContainer(directory: directory.path + "/c")
    list = try ChannelList(of: container.storage)
  }

  @Test func whatIsWrittenIsRead() throws {
    #expect(try list.entry("seats") == ChannelList.Entry())
    let name = "a seat/\u{1f3ac}"
    for entry in [
      ChannelList.Entry(isHome: true), ChannelList.Entry(isHome: true, move: "000000000000000b"),
      ChannelList.Entry(isClaimed: true),
    ] {
      try list.replace(name, by: entry)
      #expect(try list.entry(name) == entry && list.entries() == [name: entry])
    }
    try list.replace(name, by: ChannelList.Entry())
    #expect(try list.entries().isEmpty)
    #expect(try BridgeFolder([ChannelList.folderName], of: container.storage).names() == [])
  }

  @Test func manyAddChannelsAtOnceAndNoneIsLost() throws {
    let names = (0..<40).map { "channel \($0)" }
    let container = container
    let adding = try (0..<4).map { part in
      try Thread("adding") {
        for (place, name) in names.enumerated() where place % 4 == part {
          _ = try? Bridge.addChannel(name, of: container)
        }
      }
    }
    for one in adding { one.join() }
    #expect(try Set(list.entries().filter(\.value.isHome).keys) == Set(names))
    #expect(try !Bridge.addChannel(names[0], of: container))
  }
}
