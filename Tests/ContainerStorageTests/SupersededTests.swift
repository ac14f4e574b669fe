import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// P3, at the points where the mechanism is needed: each test fails without one part of it.
@Suite(.blocking) struct SupersededTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest(holding: 3) }

  private func add(faults: String) throws -> Running {
    try Running(
      .add(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=\(faults)"])
  }

  private func addTen() throws {
    for _ in 0..<10 { try slot.add() }
  }

  /// Waits until the peer has stopped once more, or ended.
  private func waitUntilQuiet(_ peer: Running) throws {
    try eventually("it stops or ends") {
      try peer.hasEnded || Processes.isStopped(peer.child.process)
    }
  }

  /// The holder has read the value and opened its staging directory: only the removal of the
  /// directory stops the commit.
  @Test(arguments: ["open~1.d/next", "write~1.d/next", "rename~value.plist"])
  func aHolderStoppedInItsCommitOverwritesNothing(_ place: String) throws {
    let peer = try add(faults: "\(place):before:stop")
    try peer.waitUntilStopped()
    try addTen()
    #expect(try peer.waitOrGo() == "14\n")
    #expect(try slot.number() == 14)
    #expect(container.counters.takeovers == 1)
  }

  /// The holder opens its staging directory only after a successor has removed it: only the check
  /// for the next generation stops the commit.
  @Test func aHolderStoppedBeforeItStagesSeesThatItIsSuperseded() throws {
    // A new process has to open the directory; only a process that continues meets the second stop.
    let peer = try add(faults: "open~1.d:before:stop;open~1.d/next:before:stop")
    try peer.waitUntilStopped()
    try addTen()
    try peer.child.send(.go)
    try waitUntilQuiet(peer)
    try addTen()
    _ = try peer.waitOrGo()
    #expect(try slot.number() == 24)
  }

  /// P7: the holder was stopped when it was about to heal a damaged value; another process healed
  /// the value before it resumed.
  @Test func aHolderStoppedInHealingTakesNoGoodValueAway() throws {
    try damageValue()
    let peer = try add(faults: "rename:before:stop")
    try peer.waitUntilStopped()
    try addTen()
    #expect(try slot.number() == 12)
    _ = try peer.waitOrGo()
    #expect(try slot.number() == 13)
  }

  /// P7, P9: one bit is wrong, and the checksum shows the damage.
  @Test func aDamagedValueIsAnsweredWithTheKeptOne() throws {
    try damageValue()
    guard case .value(_, recovered: true) = try slot.read() else {
      Issue.record("the damage was not seen")
      return
    }
    #expect(try slot.number() == 2)
    #expect(try slot.add() == 3)
    guard case .value(_, recovered: false) = try slot.read() else {
      Issue.record("the update did not heal")
      return
    }
    let damaged = try container.names(in: .damaged)
    #expect(damaged.filter { $0.hasSuffix(".n.plist") }.count == 1)
    #expect(damaged.filter { $0.hasSuffix(".n.reason") }.count == 1)
    #expect(container.counters.heals == 1)
  }

  /// Changes one bit of the number in the value, in a separate file that is moved over the value.
  private func damageValue() throws {
    let directory = try Descriptor.open(
      path: container.path + "/channels/n", [.readOnly, .directory])
    var bytes = try directory.open("value.plist", [.readOnly]).contents()
    bytes[9] ^= 4
    try directory.open("bad", [.writeOnly, .create], mode: 0o600).write(bytes)
    try directory.rename("bad", to: directory, "value.plist")
  }
}
