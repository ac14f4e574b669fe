import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// A proxy with a directory that its owner has closed to the bridge.
@Suite(.blocking) struct ClosedProxyTests {
  private let folder: TemporaryDirectory
  private let container: SharedContainer
  private let carrier: Carrier
  private let closed = [
    FaultRule(.open, path: "members/al/inbox", persistent: true, .fail(.accessDenied))
  ]

  init() throws {
    folder = try TemporaryDirectory()
    container = try SharedContainer(directory: folder.path)
    carrier = try Carrier(container)
    for name in ["al", "bob"] {
      _ = try carrier.proxy(of: .member(name), on: TwoMachines.thereName)
    }
  }

  @Test func aProxyThatCannotBeWatchedKeepsNoBridgeFromStarting() throws {
    let watch = CarrierWatch(carrier) { _ in }
    defer { watch.stop() }
    var made: Residents?
    try FaultPoints.with(closed) { made = try Residents(container, carrier, watch) }
    let residents = try #require(made)
    #expect(residents.all.map(\.name) == ["bob"])
    try FaultPoints.with(closed) { try residents.reopen(TwoMachines.thereName) }
    #expect(residents.all.map(\.name) == ["bob"])
    // It is found again with the other proxies of its machine.
    try residents.reopen(TwoMachines.thereName)
    #expect(residents.all.map(\.name).sorted() == ["al", "bob"])
  }

  /// The bridge carries nothing for the proxy, and must not be called for each of its messages.
  @Test func aProxyThatIsNotOpenedAgainIsNotWatched() throws {
    let heard = Heard<String>()
    let watch = CarrierWatch(carrier) { [heard] changed in
      for name in changed.map(\.name).sorted() { heard.add(name) }
    }
    defer { watch.stop() }
    func count(_ name: String, _ names: [String]) -> Int { names.count { $0 == name } }
    let residents = try Residents(container, carrier, watch)
    try heard.wait("both are watched") { Set($0) == ["al", "bob"] }
    try FaultPoints.with(closed) { try residents.reopen(TwoMachines.thereName) }
    try heard.wait("one is watched again") { count("bob", $0) >= 2 }
    for name in ["al", "bob"] { try container.guest().peer(name).send(1) }
    try heard.wait("the message to the other") { count("bob", $0) >= 3 }
    #expect(count("al", heard.all) == 1)
  }

  /// A lack of descriptors passes: the bridge begins again, with all proxies.
  @Test func aProxyIsNotLeftOutForLackOfDescriptors() throws {
    let watch = CarrierWatch(carrier) { _ in }
    defer { watch.stop() }
    let rule = FaultRule(
      .open, path: "members/al/inbox", persistent: true, .fail(.tooManyOpenFiles))
    #expect(throws: WormholeError.self) {
      try FaultPoints.with([rule]) { _ = try Residents(container, carrier, watch) }
    }
  }

  /// The other machine forgets an outcome as soon as this machine has confirmed its receipt.
  @Test func anOutcomeForAClosedProxyWaits() throws {
    let machines = try TwoMachines()
    _ = try machines.send(1) { $0.wantsOutcome = true }
    _ = try machines.published()
    let claimed = try machines.names("here/members/bob/claimed").first
    let name = try #require(claimed.flatMap { ClaimedName($0)?.name })
    let flow = "0123456789abcdef"
    let bundle = FlowBundle(
      flow: flow, generation: 1, first: 1, before: .start, now: 0,
      entries: [FlowEntry(.outcome(.delivered), to: "bob", name)], bodies: [nil])
    machines.kill()
    let rule = FaultRule(
      .open, path: "here/members/bob", persistent: true, .fail(.accessDenied))
    var refusal: WormholeError?
    try FaultPoints.with([rule]) {
      let residents = try Residents(machines.here, Carrier(machines.here))
      let out = try BridgeFolder(["out", TwoMachines.thereName], of: machines.here.storage)
      let incoming = try InFlow(from: TwoMachines.thereName, residents, Refusals(out))
      try incoming.begin(flow)
      refusal = try failure { _ = try incoming.receive([(bundle, 0)]) }
    }
    #expect(refusal?.code == .permissionDenied)
    #expect(try machines.names("here/members/al/receipts") == [])
    machines.kill()
    _ = try machines.opened().here.incoming.receive([(bundle, 0)])
    #expect(try machines.names("here/members/al/receipts").count == 1)
  }
}
