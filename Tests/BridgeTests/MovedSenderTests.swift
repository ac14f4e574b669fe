import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// The home of a sender moves after its message has arrived, without servers.
@Suite(.blocking) struct MovedSenderTests {
  private static let third = "000000000000000c"

  /// The receiver's machine knows the move before the receiver handles the message.
  ///
  /// Otherwise the message would be in transit at the old home for ever.
  @Test(arguments: [false, true])
  func theOutcomeGoesToTheMachineThatHasSentTheMessage(_ isKilled: Bool) throws {
    let machines = try TwoMachines()
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    try machines.settle()
    try machines.opened().there.residents.move("al", to: Self.third)
    #expect(try machines.receive(1) == [1])
    #expect(try machines.names("there/members/al/receipts").count == 1)
    if isKilled { machines.kill() }
    try machines.opened().there.residents.formerHomes = { name in
      name == "al" ? [TwoMachines.hereName] : []
    }
    try machines.settle()
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("there/members/al/receipts") == [])
  }

  /// The new home has never had the message.
  @Test func theOutcomeGoesToNoOtherMachine() throws {
    let machines = try TwoMachines()
    try machines.send(1) { $0.wantsOutcome = true }
    try machines.settle()
    let residents = try machines.opened().there.residents
    try residents.move("al", to: Self.third)
    #expect(try machines.receive(1) == [1])
    let out = try OutFlow(to: Self.third, residents)
    #expect(try out.collect(from: residents.all(for: Self.third)))
    #expect(out.next == 1)
  }

  /// No other event lets the bridge look at the sender's proxy for its former home.
  @Test func theBridgeLooksForOutcomesForTheFormerHome() throws {
    let folder = try TemporaryDirectory()
    let one = try UnconnectedBridge(folder.path + "/c")
    let bridge = one.bridge
    let pair = try #require(bridge.pair(TwoMachines.hereName))
    bridge.residents.formerHomes = { name in name == "al" ? [TwoMachines.hereName] : [] }
    bridge.homes["al"] = Home(
      StreamMessage(
        subject: "", headers: [], payload: Home.bytes(Self.third), sequence: 1, timestamp: 1,
        pending: 0))
    bridge.settleHome(of: "al")
    #expect(pair.changed == [.member("al")])
    (pair.changed, pair.due) = ([], nil)
    var news = BridgeNews.NewsContent()
    news.residents = [.member("al")]
    bridge.take(news, .now)
    #expect(pair.changed == [.member("al")] && pair.due != nil)
  }
}
