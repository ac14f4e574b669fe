import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// The files that state what an operator has decided of channels and queues.
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
      #expect(try list.entry(name) == entry && list.entries().entries == [name: entry])
    }
    try list.replace(name, by: ChannelList.Entry())
    #expect(try list.entries().entries.isEmpty)
    #expect(try BridgeFolder([ChannelList.folderName], of: container.storage).names() == [])
  }

  /// Otherwise the bridge would write over a command, or a command over the bridge's own step.
  @Test func oneProcessChangesAChannelAtATime() throws {
    let other = try ChannelList(of: container.storage)
    var refusal: WormholeError?
    try list.changing("seats", within: .zero) { () throws(WormholeError) in
      do throws(WormholeError) {
        try other.change("seats", within: .zero) { $0.isHome = true }
      } catch {
        refusal = error
      }
    }
    #expect(refusal != nil)
    #expect(try list.entry("seats") == ChannelList.Entry())
    try other.change("seats", within: .zero) { $0.isHome = true }
    try list.change("seats", within: .zero) { $0.move = "000000000000000b" }
    #expect(try list.entry("seats") == ChannelList.Entry(isHome: true, move: "000000000000000b"))
  }

  @Test func manyAddChannelsAtOnceAndNoneIsLost() throws {
    let container = container
    let names = try addAtOnce { _ = try Bridge.addChannel($0, of: container) }
    #expect(try Set(list.entries().entries.filter(\.value.isHome).keys) == names)
    #expect(try !Bridge.addChannel("name 0", of: container))
  }

  @Test func manyAddQueuesAtOnceAndNoneIsLost() throws {
    let container = container
    let names = try addAtOnce { _ = try Bridge.addQueue($0, of: container) }
    let files = try BridgeFolder([QueueList.folderName], of: container.storage).names()
    #expect(Set(files.map(BridgeFolder.name(of:))) == Set(names.map(Optional.some)))
    #expect(try !Bridge.addQueue("name 0", of: container))
  }

  /// An operator changes the decision before the move has begun.
  @Test func aQueueThatIsNamedAgainDoesNotMove() throws {
    #expect(try Bridge.addQueue("jobs", of: container))
    let queues = try QueueList(of: container.storage)
    var entry = try #require(try queues.entry("jobs"))
    entry.move = "000000000000000b"
    try queues.replace("jobs", by: entry)
    #expect(try !Bridge.addQueue("jobs", of: container))
    entry.move = nil
    #expect(try queues.entry("jobs") == entry)
  }

  /// The heir may state the queue with an earlier term: it was a home before, in a conflict.
  @Test(arguments: [
    ("000000000000000b", 2, false), ("000000000000000b", 3, true), ("000000000000000b", 4, true),
    ("000000000000000c", 3, false), ("000000000000000c", 4, true),
  ])
  func aMoveEndsWithTheHeirsTermOrALaterHome(_ machine: String, _ term: Int, _ ends: Bool) {
    var entry = QueueList.Entry()
    (entry.heir, entry.term) = ("000000000000000b", 3)
    #expect(entry.ends(withHome: machine, term) == ends)
  }

  /// As after an error of the disk: what the files state stays unknown, and is not guessed.
  @Test func aDamagedFileHoldsUpItsOwnChannelOnly() throws {
    let words = Heard<String>()
    var options = Options()
    options.log = { words.add($0.text) }
    let one = try UnconnectedBridge(directory.path + "/m", options: options)
    #expect(try Bridge.addChannel("seats", of: one.container))
    one.bridge.lookAtList()
    one.bridge.channels.wanted = ["late"]
    let files = try BridgeFolder([ChannelList.folderName], of: one.container.storage)
    let damaged: [UInt8] = [1]
    for name in ["seats", "late"] { try files.write("\(name).plist", damaged) }
    #expect(try Bridge.addChannel("far", of: one.container))
    for _ in 0..<3 { one.bridge.lookAtList() }
    #expect(one.bridge.channels.own.keys.sorted() == ["far", "seats"], "what is known holds")
    #expect(one.bridge.channels.wanted == ["late"])
    let reason = "the file of the bridge is damaged"
    #expect(one.bridge.channels.unread.reasons == ["seats": reason, "late": reason])
    #expect(one.bridge.channelStatus["late"]?["trouble"]?.stringValue == reason)
    #expect(words.all.count { $0.contains(reason) } == 2)
    // As after an error that passes, the directory is the same.
    let sound = try BinaryEncoder().encode(PropertyListValue.dictionary(["home": true]))
    for name in ["seats", "late"] {
      #expect(try files.write(sound, at: 0, of: "\(name).plist"))
    }
    one.bridge.lookAtList()
    #expect(one.bridge.channels.own.keys.sorted() == ["far", "late", "seats"])
    #expect(one.bridge.channels.unread.reasons == [:] && one.bridge.channels.wanted == [])
  }

  /// As when the process has as many descriptors as it may have.
  @Test func aChannelThatCannotBeWatchedHoldsUpNoOther() throws {
    let one = try UnconnectedBridge(directory.path + "/m")
    let (bridge, channels) = (one.bridge, one.bridge.channels)
    for name in ["first", "second", "third"] {
      #expect(try Bridge.addChannel(name, of: one.container))
    }
    let rule = FaultRule(
      nil, path: "m/channels/second", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { for _ in 0..<3 { bridge.lookAtList() } }
    #expect(channels.own.keys.sorted() == ["first", "third"])
    #expect(Array(channels.unread.reasons.keys) == ["second"])
    bridge.lookAtList()
    #expect(channels.own.keys.sorted() == ["first", "second", "third"])
    #expect(channels.unread.reasons == [:])
  }

  /// A new machine would have the damaged file, too.
  @Test func theRemedyForADamagedFileIsItsCommand() throws {
    let damaged: [UInt8] = [1]
    for folder in [ChannelList.folderName, QueueList.folderName] {
      try BridgeFolder([folder], of: container.storage).write("seats.plist", damaged)
    }
    let channel = try failure { _ = try Bridge.addChannel("seats", of: container) }
    #expect(channel.hint?.contains("'wormhole bridge channel'") == true)
    let queue = try failure { _ = try Bridge.addQueue("seats", of: container) }
    #expect(queue.hint?.contains("'wormhole bridge queue'") == true)
    #expect(channel.code == .damaged && queue.code == .damaged)
  }

  /// Four threads add ten names each.
  private func addAtOnce(
    _ add: @escaping @Sendable (String) throws -> Void
  ) throws -> Set<String> {
    let names = (0..<40).map { "name \($0)" }
    let adding = try (0..<4).map { part in
      try Thread("adding") {
        for (place, name) in names.enumerated() where place % 4 == part { try? add(name) }
      }
    }
    for one in adding { one.join() }
    return Set(names)
  }
}
