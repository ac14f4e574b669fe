import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// Homes of channels that move while a bridge is killed or late, without servers.
@Suite(.blocking) struct ChannelRivalTests {
  private let folder: TemporaryDirectory
  private static let (other, third) = ("000000000000000b", "000000000000000c")

  init() throws { folder = try TemporaryDirectory() }

  private func record(_ machine: String, _ sequence: UInt64) -> StreamMessage {
    message(Home.bytes(machine), sequence)
  }

  private func message(_ bytes: [UInt8], _ sequence: UInt64, at: UInt64 = 1) -> StreamMessage {
    StreamMessage(
      subject: "", headers: [], payload: bytes, sequence: sequence, timestamp: at, pending: 0)
  }

  /// What another machine has published of the channel.
  private func copy(_ value: Int64, version: Int, heir: String? = nil) throws -> [UInt8] {
    let content = Carrier.ChannelContent(
      version: version, sent: Date(), writer: "w", value: .integer(value), until: nil)
    return try #require(ChannelTraffic.bytes(content, of: Self.other, heir: heir, offset: 0))
  }

  /// The channel was given away, and the new home has changed it and has given it back before this
  /// machine's bridge has ended its own part of the move.
  ///
  /// If the first move went on, the changes would be lost, or no machine would be the home.
  @Test(arguments: [false, true])
  func aChannelThatComesBackBeforeItsMoveHasEndedIsTaken(_ isKilled: Bool) throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, seats) = (one.bridge, one.container.channel("seats", of: Int.self))
    try seats.put(1)
    #expect(try Bridge.addChannel("seats", of: one.container))
    try Bridge.moveChannel("seats", to: Self.other, of: one.container)
    let legacy = try bridge.carrier.giveAway("seats", to: Self.other)
    if !isKilled {
      // The bridge has read the records of both moves at once.
      var move = ChannelMove(to: Self.other)
      (move.legacy, move.isPublished) = (legacy, true)
      bridge.channels.moves["seats"] = move
      bridge.channels.own["seats"] = ChannelTraffic.Own()
      bridge.take(channelHome: "seats", record(Self.other, 3))
    }
    let version = try #require(legacy.content).version + 2
    let returned = try copy(5, version: version, heir: one.machine)
    bridge.take(channelCopy: "seats", message(returned, 5))
    bridge.take(channelHome: "seats", record(one.machine, 6))
    #expect(try seats.value == 5)
    #expect(try seats.metadata?.home == nil)
    #expect(bridge.channels.moves["seats"] == nil)
  }

  /// The record of the first new home is on its way to the servers, with an unknown end.
  ///
  /// If the content named the second one by then, no machine would take the channel.
  @Test func aSecondMoveDoesNotTurnAsideTheFirst() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, seats) = (one.bridge, one.container.channel("seats", of: Int.self))
    try seats.put(1)
    #expect(try Bridge.addChannel("seats", of: one.container))
    try Bridge.moveChannel("seats", to: Self.other, of: one.container)
    bridge.lookAtList()
    let legacy = try bridge.carrier.giveAway("seats", to: Self.other)
    try #require(bridge.channels.moves["seats"]?.machine == Self.other)
    bridge.channels.moves["seats"]?.legacy = legacy
    bridge.channels.moves["seats"]?.isUnderWay = true
    try Bridge.moveChannel("seats", to: Self.third, of: one.container)
    bridge.lookAtList()
    let move = try #require(bridge.channels.moves["seats"])
    #expect(move.machine == Self.other && move.legacy == legacy && move.isUnderWay)
    #expect(try bridge.heir(ofChannel: "seats", move) == Self.other)
    // The first new home has changed the channel, and has given it back: the second move is due.
    let version = try #require(legacy.content).version + 2
    bridge.take(channelHome: "seats", record(Self.other, 3))
    bridge.take(
      channelCopy: "seats", message(try copy(5, version: version, heir: one.machine), 5))
    bridge.take(channelHome: "seats", record(one.machine, 6))
    #expect(try seats.value == 5 && seats.metadata?.home == nil)
    let next = try #require(bridge.channels.moves["seats"])
    #expect(next.machine == Self.third && next.legacy == nil && !next.isUnderWay)
    #expect(try bridge.heir(ofChannel: "seats", next) == Self.third)
  }

  /// The bridge was killed after it had given the channel away, perhaps with the record.
  @Test(arguments: [false, true])
  func theNextBridgeContinuesTheFirstMove(_ isEmpty: Bool) throws {
    let path = folder.path + "/c"
    let container = try SharedContainer(directory: path)
    let seats = container.channel("seats", of: Int.self)
    if !isEmpty { try seats.put(1) }
    #expect(try Bridge.addChannel("seats", of: container))
    try Bridge.moveChannel("seats", to: Self.other, of: container)
    _ = try Carrier(container).giveAway("seats", to: Self.other)
    try Bridge.moveChannel("seats", to: Self.third, of: container)
    let one = try UnconnectedBridge(path)
    let (bridge, move) = (one.bridge, ChannelMove(to: Self.third))
    #expect(try bridge.heir(ofChannel: "seats", move) == Self.other)
    // Only a machine that was given up never takes the channel.
    bridge.giveUp(Self.other, .putBack)
    #expect(try bridge.heir(ofChannel: "seats", move) == Self.third)
    _ = try bridge.carrier.giveAway("seats", to: Self.third)
    #expect(try bridge.carrier.heir(ofChannel: "seats") == Self.third)
    if !isEmpty { #expect(try seats.value == 1 && seats.metadata?.home == Self.third) }
  }

  @Test func aChannelThatIsGivenAwayAgainIsNotTakenTwice() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, seats) = (one.bridge, one.container.channel("seats", of: Int.self))
    let inherited = try copy(5, version: 9, heir: one.machine)
    bridge.take(channelCopy: "seats", message(inherited, 1))
    bridge.take(channelHome: "seats", record(one.machine, 2))
    #expect(try seats.value == 5 && seats.metadata?.home == nil)
    #expect(try seats.metadata?.version == 10)
    try seats.put(6)
    try Bridge.moveChannel("seats", to: Self.third, of: one.container)
    _ = try bridge.carrier.giveAway("seats", to: Self.third)
    bridge.take(channelHome: "seats", record(one.machine, 2))
    #expect(try seats.value == 6 && seats.metadata?.home == Self.third)
    let entry = try ChannelList(of: one.container.storage).entry("seats")
    #expect(entry == ChannelList.Entry(isHome: true, move: Self.third))
  }

  /// The operator sends a channel on while this machine still takes the channel of a lost home.
  @Test func aCommandDuringTheTakingOfALostChannelIsNotOverwritten() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, container) = (one.bridge, one.container)
    bridge.take(channelHome: "seats", record(Self.other, 1))
    bridge.take(channelCopy: "seats", message(try copy(5, version: 9), 2))
    try Bridge.moveChannel("seats", to: one.machine, of: container)
    bridge.take(channelHome: "seats", record(one.machine, 3))
    let (pause, isAccepted) = (FaultPause(), Monitor(false))
    let command = try Thread("command") {
      try? eventually("the channel is about to be taken") { pause.isReached }
      let isDone = (try? Bridge.moveChannel("seats", to: Self.third, of: container)) != nil
      isAccepted.withLock { $0 = isDone }
      pause.open()
    }
    let rule = FaultRule(.rename, path: "seats/value.plist", .pause(pause))
    try FaultPoints.with([rule]) { try bridge.take(lostChannel: "seats") }
    command.join()
    #expect(isAccepted.withLock { $0 })
    let entry = try ChannelList(of: container.storage).entry("seats")
    #expect(entry == ChannelList.Entry(isHome: true, move: Self.third))
    let seats = container.channel("seats", of: Int.self)
    #expect(try seats.value == 5 && seats.metadata?.home == nil)
  }

  /// Published, what is here would replace what the former home has left, without an heir.
  ///
  /// The channel that is taken late goes on to where an operator has sent it meanwhile.
  @Test func whatIsNotTakenYetIsNotPublished() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, seats) = (one.bridge, one.container.channel("seats", of: Int.self))
    bridge.take(channelCopy: "seats", message(try copy(5, version: 9, heir: one.machine), 1))
    let rule = FaultRule(.rename, path: "seats/value.plist", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) { bridge.take(channelHome: "seats", record(one.machine, 2)) }
    #expect(bridge.channels.inheritances == ["seats"])
    #expect(!bridge.channels.mayPublish("seats"))
    try Bridge.moveChannel("seats", to: Self.third, of: one.container)
    bridge.inherit(channel: "seats")
    #expect(try seats.value == 5 && seats.metadata?.home == nil)
    #expect(bridge.channels.inheritances.isEmpty && bridge.channels.mayPublish("seats"))
    let entry = try ChannelList(of: one.container.storage).entry("seats")
    #expect(entry == ChannelList.Entry(isHome: true, move: Self.third))
  }

  /// Only the machine that the former home has named takes the channel.
  @Test(arguments: [nil, "000000000000000c"] as [String?])
  func aRecordAloneIsNoInheritance(_ heir: String?) throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    one.bridge.take(channelCopy: "seats", message(try copy(5, version: 9, heir: heir), 1))
    one.bridge.take(channelHome: "seats", record(one.machine, 2))
    #expect(try one.container.channel("seats", of: Int.self).value == nil)
    let entry = try ChannelList(of: one.container.storage).entry("seats")
    #expect(entry == ChannelList.Entry())
  }

  /// A change was asked of the former home, and the bridge was killed: the home moves here.
  ///
  /// Otherwise the old change would be asked of the next home, and would replace a later value.
  /// Also if the disk is full at that moment: then the channel is taken later.
  @Test(arguments: [false, true])
  func noOldChangeIsAskedAfterTheHomeHasMovedHere(_ isFull: Bool) throws {
    let path = folder.path + "/c"
    let container = try SharedContainer(directory: path)
    let changes = try BridgeFolder([ChannelTraffic.changesName], of: container.storage)
    let queue = try ChangeQueue(changes, "seats")
    let change = Carrier.ChannelChange(
      channel: "seats", operation: "x", expected: nil, value: 1)
    queue.add(change) { _ in }
    try queue.begin(1)
    let one = try UnconnectedBridge(path)
    let inherited = try copy(7, version: 3, heir: one.machine)
    one.bridge.take(channelCopy: "seats", message(inherited, 1))
    let rule = FaultRule(.rename, path: "changes/seats.plist", persistent: true, .fail(.noSpace))
    FaultPoints.with(isFull ? [rule] : []) {
      one.bridge.take(channelHome: "seats", record(one.machine, 2))
    }
    if isFull {
      #expect(one.bridge.channels.inheritances == ["seats"])
      #expect(!one.bridge.channels.mayPublish("seats"))
      one.bridge.inherit(channel: "seats")
    }
    one.bridge.readChanges()
    #expect(one.bridge.channels.inheritances.isEmpty && one.bridge.channels.mayPublish("seats"))
    #expect(try container.channel("seats", of: Int.self).value == 7)
    #expect(one.bridge.channels.queues["seats"]?.current == nil)
    #expect(try ChangeQueue(changes, "seats").current == nil)
  }

  /// The servers' clock may be ahead, and they may give an older statement again.
  @Test func theTimeOfACopyIsNotInTheFutureAndNeverGoesBack() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let bytes = try copy(5, version: 9)
    one.bridge.take(channelHome: "seats", record(Self.other, 1))
    let future = UInt64(one.bridge.now) + 3_600_000_000_000
    one.bridge.take(channelCopy: "seats", message(bytes, 2, at: future))
    #expect(try one.container.channel("seats", of: Int.self).value == 5)
    let slot = try one.container.storage.slot(.channels, "seats")
    let since = try #require(try slot.home()?.since)
    #expect(since <= Date() && since > Date().addingTimeInterval(-600))
    one.bridge.take(channelCopy: "seats", message(bytes, 3, at: 1))
    #expect(try slot.home()?.since == since)
  }

  @Test func aChangeWithoutAConnectionFailsAtOnce() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let answers = Heard<String>()
    let change = Carrier.ChannelChange(
      channel: "seats", operation: "x", expected: nil, value: 1)
    one.bridge.ask(change) { [answers] answer in
      answers.add("\(answer.result.rawValue): \(answer.reason ?? "")")
    }
    #expect(answers.all == ["unreachable: the home of the channel cannot be reached"])
    #expect(one.bridge.channels.queues["seats"]?.waiting.isEmpty == true)
    // The next bridge does not ask for it.
    #expect(try one.names("bridge/changes") == [])
  }

  @Test func theEndOfAValueFollowsTheClocks() throws {
    let until = Date(timeIntervalSince1970: 1_700_000_000)
    let content = Carrier.ChannelContent(
      version: 3, sent: Date(timeIntervalSince1970: 1), writer: "al", value: 7, until: until)
    let asked = [Self.third: "x"]
    for heir in [nil, Self.third] {
      // The servers' clock is 5 s ahead of the home's, and 3 s behind the clock of the copy.
      let bytes = try #require(
        ChannelTraffic.bytes(content, of: Self.other, heir: heir, asked, offset: 5_000_000_000))
      let copy = try #require(ChannelTraffic.copy(bytes, at: 4, offset: -3_000_000_000))
      #expect(copy.content.until == until.addingTimeInterval(8))
      #expect(copy.machine == Self.other && copy.heir == heir && copy.at == 4)
      #expect(copy.content.sent == content.sent && copy.content.version == 3)
      #expect(copy.operations == (heir == nil ? [:] : asked))
    }
  }

  /// The content is too large for the servers, and an operator's command has come in between.
  @Test func aMoveThatCannotBeMadeEndsNoOther() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let (bridge, seats) = (one.bridge, one.container.channel("seats", of: Int.self))
    try seats.put(1)
    #expect(try Bridge.addChannel("seats", of: one.container))
    let list = try ChannelList(of: one.container.storage)
    for (machine, next) in [(Self.other, Self.third as String?), (Self.third, nil)] {
      try Bridge.moveChannel("seats", to: machine, of: one.container)
      bridge.lookAtList()
      let legacy = try bridge.carrier.giveAway("seats", to: machine)
      try #require(bridge.channels.moves["seats"]?.machine == machine)
      bridge.channels.moves["seats"]?.legacy = legacy
      if let next { try Bridge.moveChannel("seats", to: next, of: one.container) }
      bridge.keep(channel: "seats")
      #expect(try list.entry("seats") == ChannelList.Entry(isHome: true, move: next))
      #expect(bridge.channels.moves["seats"]?.machine == next)
      #expect(bridge.channels.moves["seats"]?.legacy == nil)
      #expect(try seats.value == 1 && seats.metadata?.home == nil)
    }
  }
}

/// A move of a channel that cannot begin, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct ChannelWaitTests {
  /// Until the new home can be reached, the present one is the home, with everything that it does.
  @Test func aChannelThatWaitsForItsNewHomeIsCarriedStill() throws {
    guard let machines = try BridgedMachines.start() else { return }
    let home = machines.here.container.channel("seats", of: Int.self)
    let copy = machines.there.container.channel("seats", of: Int.self)
    try home.put(1)
    #expect(try Bridge.addChannel("seats", of: machines.here.container))
    try eventually("the copy is there", within: .seconds(60)) { try copy.value == 1 }
    try Bridge.moveChannel("seats", to: "00000000000000ff", of: machines.here.container)
    try eventually("the move waits", within: .seconds(60)) {
      try machines.here.status().contains("00000000000000ff, cannot be reached")
    }
    try home.put(2)
    try eventually("the copy follows", within: .seconds(60)) { try copy.value == 2 }
    withExtendedLifetime(machines) {}
  }
}
