import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// What a bridge does while nothing happens, and after errors that pass.
@Suite(.blocking, .notSanitized("about processes")) struct BridgeQuietTests {
  /// Without a second look, the member would be missing in all heartbeats until something changes.
  @Test func aMemberIsLookedAtAgainAfterAnError() throws {
    let folder = try TemporaryDirectory()
    let one = try UnconnectedBridge(folder.path + "/c")
    let member = try SharedContainer(directory: one.path).join(as: "al")
    var content = BridgeNews.NewsContent()
    content.members = ["al"]
    let rule = FaultRule(.open, path: "members/al", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) { one.bridge.take(content, .now) }
    #expect(one.bridge.locals["al"] == nil)
    one.bridge.lookAgain(.now + .seconds(60))
    #expect(one.bridge.locals["al"]?.isRunning == true)
    #expect(one.bridge.unseen.isEmpty)
    withExtendedLifetime(member) {}
  }

  @Test func nothingIsWrittenWhileNothingChanges() throws {
    guard let machines = try BridgedMachines.start() else { return }
    func files() throws -> Int64 {
      try Descriptor.open(path: "\(machines.here.path)/bridge/status.plist", [.readOnly])
        .status().modified
    }
    // The status becomes ten seconds old, and not one.
    try eventually("the status is not written again", within: .seconds(60)) {
      let before = try files()
      let _: Void? = Monitor(()).wait(until: .now + .seconds(3)) { _ in nil }
      return try files() == before
    }
    #expect(try machines.here.status().contains("serving"))
  }

  /// A machine without members that run says so less often, and is not taken for absent.
  @Test func aQuietMachineIsNotAbsent() throws {
    guard let machines = try BridgedMachines.start() else { return }
    let bytes = try #require(
      Heartbeat.bytes(generation: 1, [], full: [], interval: Heartbeat.quietInterval))
    let beat = try #require(Heartbeat(bytes, .now))
    #expect(beat.interval == .seconds(5) && beat.longestSilence == .seconds(20))
    let al = try machines.here.container.join(as: "al")
    let bob = try machines.there.container.join(as: "bob")
    try machines.here.waitUntilRunning("bob")
    // The member is shown at once although the machine was quiet before, and its end as well.
    bob.leave()
    try machines.here.waitUntilRunning("bob", false)
    try eventually("the machine is quiet", within: .seconds(60)) {
      try machines.here.status().contains("0 members run")
    }
    let again = try machines.there.container.join(as: "bob")
    let start = Instant.now
    try machines.here.waitUntilRunning("bob")
    #expect(Instant.now - start < .seconds(30))
    withExtendedLifetime((al, again)) {}
  }

  /// A bridge that has nothing else to do moves a flow at once, and not with its next statement or
  /// heartbeat.
  @Test func aMessageWaitsForNoOtherEvent() throws {
    let folder = try TemporaryDirectory()
    let one = try UnconnectedBridge(folder.path + "/c")
    let machine = "0123456789abcdef"
    _ = try one.bridge.residents.proxy(of: .member("bob"), on: machine)
    let pair = try #require(one.bridge.pair(machine))
    pair.due = nil
    try one.container.guest().peer("bob").send(1)
    var content = BridgeNews.NewsContent()
    content.residents = [.member("bob")]
    let now = Instant.now
    one.bridge.take(content, now)
    #expect(pair.due.map { $0 <= now } == true)
    #expect(pair.changed == [.member("bob")])
  }

  /// One machine of the account may be confused, or lie: the bridges of the others continue.
  @Test func aNumberThatWasNeverSentEndsNoBridge() throws {
    guard let machines = try BridgedMachines.start() else { return }
    let (here, there) = (machines.here, machines.there)
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    try here.waitUntilRunning("bob")
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    try al.peer("bob").send(1)
    try heard.wait("the first message", within: .seconds(60)) { $0.count == 1 }
    let names = try [here, there].map { try BridgeStatus.identity(of: $0.container).machine }
    let folder = try BridgeFolder(["out", names[1]], of: here.container.storage)
    let flow = try #require(try folder.read("flow.plist")?["flow"]?.stringValue)
    let lie = FlowPosition(flow: flow, number: 1 << 40, chain: .start)
    let bytes = try BinaryEncoder().encode(PropertyListValue.dictionary(lie.propertyList))
    let liar = try machines.server.connect()
    try eventually("the lie is noticed", within: .seconds(60)) {
      try liar.publish("whm.\(names[0]).confirm.\(names[1])", bytes)
      return try here.status().contains("has received number")
    }
    try al.peer("bob").send(2)
    try heard.wait("the second message", within: .seconds(60)) { $0.count == 2 }
    #expect(here.bridge?.hasEnded == false)
    receiving.stop()
  }
}
