import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

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
}
