import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// A record of the group is no record of a home, because an operator or another program wrote it.
@Suite(.blocking) struct UnreadableRecordTests {
  private let scene: ConnectedBridge
  private let member: Member
  private var bridge: Bridge { scene.one.bridge }

  init() throws {
    scene = try ConnectedBridge()
    member = try scene.one.container.join(as: "bob")
    bridge.link = scene.link
    bridge.locals["bob"] = try scene.one.container.peer("bob").profile
  }

  private func take(_ record: [UInt8], _ sequence: UInt64) throws {
    let subjects = try #require(scene.link.subjects)
    let message = StreamMessage(
      subject: try subjects.memberRecord("bob"), headers: [], payload: record, sequence: sequence,
      timestamp: 1, pending: 0)
    bridge.take(message, subjects)
  }

  /// The servers refuse a claim that expects no record.
  @Test func aNameWhoseRecordCannotBeReadIsClaimed() throws {
    let subject = try #require(scene.link.subjects).memberRecord("bob")
    scene.server.stored = "whs."
    scene.server.log.append(HubMessage(subject, [1]))
    try take([1], 1)
    #expect(bridge.conflicts == ["bob": "the record of its home cannot be read"])
    bridge.claimHomes(scene.link)
    try scene.serve("the name is claimed") { scene.server.log.count == 2 }
    try take(scene.server.log[1].payload, 2)
    #expect(bridge.home(of: "bob") == scene.one.machine)
    #expect(bridge.conflicts == [:] && bridge.unreadableHomes == [:])
  }

  private func take(channelRecord record: [UInt8], _ sequence: UInt64) throws {
    let subjects = try #require(scene.link.subjects)
    let message = StreamMessage(
      subject: try subjects.channelRecord("seats"), headers: [], payload: record,
      sequence: sequence, timestamp: 1, pending: 0)
    bridge.take(message, subjects)
  }

  private func trouble() -> String? { bridge.channelStatus["seats"]?["trouble"]?.stringValue }

  /// The servers refuse a claim that expects no record, and the channel would never be carried.
  @Test func aChannelWhoseRecordCannotBeReadIsClaimed() throws {
    let container = scene.one.container
    try container.channel("seats", of: Int.self).put(1)
    #expect(try Bridge.addChannel("seats", of: container))
    let subject = try #require(scene.link.subjects).channelRecord("seats")
    scene.server.stored = "whs."
    scene.server.log.append(HubMessage(subject, [1]))
    try take(channelRecord: [1], 1)
    #expect(trouble() == Home.unreadable)
    bridge.carryChannels(scene.link, .now)
    try scene.serve("the channel is claimed") { scene.server.log.count == 2 }
    try take(channelRecord: scene.server.log[1].payload, 2)
    #expect(bridge.channels.homes["seats"]?.machine == scene.one.machine)
    #expect(trouble() == nil && bridge.channels.unreadableHomes == [:])
  }

  /// Elsewhere, programs are notified at once, and the copy is there when the home is known again.
  @Test func theCopyOfAChannelWaitsForARecordThatCanBeRead() throws {
    let (other, container) = ("000000000000000b", scene.one.container)
    try take(channelRecord: [1], 1)
    bridge.channels.forgetStrays()
    let content = Carrier.ChannelContent(
      version: 3, sent: Date(), writer: "w", value: 5, until: nil)
    let bytes = try #require(ChannelTraffic.bytes(content, of: other, offset: 0))
    let copy = StreamMessage(
      subject: "", headers: [], payload: bytes, sequence: 2, timestamp: 1, pending: 0)
    bridge.take(channelCopy: "seats", copy)
    let reasons = Heard<String>()
    let change = Carrier.ChannelChange(
      channel: "seats", operation: "x", expected: nil, value: 1)
    bridge.ask(change) { answer in reasons.add(answer.reason ?? "") }
    #expect(reasons.all == [Home.unreadable])
    #expect(try container.channel("seats", of: Int.self).value == nil)
    try take(channelRecord: Home.bytes(other), 3)
    #expect(try container.channel("seats", of: Int.self).value == 5)
    #expect(trouble() == nil)
  }

  /// The servers have lost the record of a channel: a claim expects none.
  @Test func anUnreadableRecordOfAChannelIsForgottenWhenTheServersHaveLostIt() throws {
    try take(channelRecord: [1], 7)
    scene.link.comparedRestarts -= 1
    bridge.forgetLostRecords(scene.link)
    #expect(trouble() == nil && bridge.channels.unreadableHomes == [:])
  }

  /// The servers have lost the record: a claim that expects the record would be refused.
  @Test func anUnreadableRecordIsForgottenWhenTheServersHaveLostIt() throws {
    try take([1], 7)
    scene.link.comparedRestarts -= 1
    bridge.forgetLostRecords(scene.link)
    #expect(bridge.conflicts == [:] && bridge.unreadableHomes == [:])
  }
}
