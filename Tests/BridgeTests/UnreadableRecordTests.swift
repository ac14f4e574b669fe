import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
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

  /// The servers have lost the record: a claim that expects the record would be refused.
  @Test func anUnreadableRecordIsForgottenWhenTheServersHaveLostIt() throws {
    try take([1], 7)
    scene.link.comparedRestarts -= 1
    bridge.forgetLostRecords(scene.link)
    #expect(bridge.conflicts == [:] && bridge.unreadableHomes == [:])
  }
}
