import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// What a bridge knows of the servers' clock, without servers.
@Suite(.blocking) struct ClockChangeTests {
  private let folder: TemporaryDirectory
  /// What this machine's clock is ahead of the right time, in nanoseconds.
  private let error: Monitor<Int64>
  /// How long this machine has been suspended, in nanoseconds.
  private let suspension: Monitor<Int64>
  private let one: UnconnectedBridge

  init() throws {
    let (error, suspension) = (Monitor<Int64>(0), Monitor<Int64>(0))
    (self.error, self.suspension) = (error, suspension)
    folder = try TemporaryDirectory()
    var options = Options()
    options.environment.sinceEpoch = { Clocks.sinceEpoch + error.withLock { $0 } }
    options.environment.sinceBoot = { Clocks.sinceBoot + suspension.withLock { $0 } }
    one = try UnconnectedBridge(folder.path + "/c", options: options)
  }

  /// Takes the record of this start, which the servers have stored now.
  private func record(_ sequence: UInt64) throws {
    let subjects = try Subjects(group: "g", Deployment())
    let record = MachineRecord(generation: 1, nonce: one.bridge.nonce)
    one.bridge.take(
      StreamMessage(
        subject: subjects.machineRecord(one.machine), headers: [], payload: record.bytes,
        sequence: sequence, timestamp: UInt64(Clocks.sinceEpoch), pending: 0),
      subjects)
  }

  /// A machine may start with a wrong clock, and have the clock set later.
  ///
  /// By the difference of before, each message that arrives would be under way for an hour, and
  /// would have expired, and each request would be too late.
  @Test(arguments: [-3600, 3600] as [Int64])
  func theServersClockIsKnownWhenThisClockIsSet(_ seconds: Int64) throws {
    one.bridge.claimed = Clocks.sinceBoot
    try record(1)
    let before = try #require(one.bridge.clockOffset)
    #expect(abs(before) < 60_000_000_000)
    error.withLock { $0 = seconds * 1_000_000_000 }
    let after = try #require(one.bridge.clockOffset)
    #expect(abs(after + seconds * 1_000_000_000) < 60_000_000_000)
  }

  /// The connection was lost before the record was read, and returned much later.
  @Test func theClockIsNotReadFromARecordThatIsReadLate() throws {
    try record(1)
    #expect(one.bridge.clockOffset == nil)
    // The next claim is lost with its connection, and the next reader gives the same record.
    one.bridge.claimed = Clocks.sinceBoot
    try record(1)
    #expect(one.bridge.clockOffset == nil)
    try record(2)
    #expect(one.bridge.clockOffset != nil)
  }

  /// The monotonic clock stops while the machine is suspended, and shows no time between the claim
  /// and its record.
  @Test func theClockIsNotReadAfterASuspension() throws {
    one.bridge.claimed = Clocks.sinceBoot
    suspension.withLock { $0 = 3600 * 1_000_000_000 }
    try record(1)
    #expect(one.bridge.clockOffset == nil)
  }

  /// No clock of the machine has counted the pause, and the wall clock was set afterwards.
  ///
  /// All requests of this machine would state a time in the past, and no machine would handle them.
  @Test func theServersClockIsReadAgainAfterAPauseByTheHypervisor() throws {
    one.bridge.claimed = Clocks.sinceBoot
    try record(1)
    #expect(!one.bridge.isClockAhead)
    suspension.withLock { $0 = -600 * 1_000_000_000 }
    #expect(one.bridge.isClockAhead)
    one.bridge.claimed = Clocks.sinceBoot - 600 * 1_000_000_000
    try record(2)
    let offset = try #require(one.bridge.clockOffset)
    #expect(abs(offset) < 60_000_000_000)
    #expect(!one.bridge.isClockAhead)
  }

  /// The clock was wrong when the servers' clock was read.
  @Test func aPauseIsSeenAfterTheClockWasSetBack() throws {
    error.withLock { $0 = 3600 * 1_000_000_000 }
    one.bridge.claimed = Clocks.sinceBoot
    try record(1)
    error.withLock { $0 = 0 }
    one.bridge.followClock()
    #expect(!one.bridge.isClockAhead)
    suspension.withLock { $0 = -600 * 1_000_000_000 }
    one.bridge.followClock()
    #expect(one.bridge.isClockAhead)
  }

  /// The generation stays, because other machines give back lent messages after a new start.
  ///
  /// Requests of this machine are carried meanwhile.
  @Test func theRecordOfAStartIsStoredAgainWhenTheClockWasSetAhead() throws {
    let scene = try ConnectedBridge()
    let (bridge, link) = (scene.one.bridge, scene.link)
    let record = try begin(scene)
    link.isServing = true
    try bridge.claimPlace(link, .now)
    #expect(link.nextClockClaim == .longAgo, "the clock was set back only")
    bridge.ownBootTime = present - 600 * 1_000_000_000
    let now = Instant.now
    for _ in 0..<3 { try bridge.claimPlace(link, now) }
    #expect(link.isServing && !link.isClaiming && bridge.end == nil)
    try scene.serve("the record is stored") { scene.server.log.count > 1 }
    try bridge.claimPlace(link, now + .seconds(59))
    #expect(link.nextClockClaim == now + .seconds(60), "at most once in a minute")
    #expect(scene.server.log.map { MachineRecord($0.payload) } == [record, record])
    #expect(bridge.place.generation == record.generation)
  }

  /// Messages that have waited on the servers would live longer by the pause.
  @Test func aNewConnectionWaitsForTheClockForATime() throws {
    let scene = try ConnectedBridge()
    let (bridge, link) = (scene.one.bridge, scene.link)
    _ = try begin(scene)
    bridge.ownBootTime = present - 600 * 1_000_000_000
    let now = Instant.now
    for seconds in [0, 9] { try bridge.claimPlace(link, now + .seconds(seconds)) }
    #expect(!link.isServing && !link.isClaiming)
    try bridge.claimPlace(link, now + .seconds(10))
    #expect(link.isServing && bridge.isClockAhead)
  }

  private var present: Int64 { Clocks.sinceEpoch - Clocks.sinceBoot }

  /// Lets the servers have the record of this start, and the bridge know their clock.
  private func begin(_ scene: ConnectedBridge) throws -> MachineRecord {
    let bridge = scene.one.bridge
    try bridge.place.begin(after: nil, nonce: bridge.nonce, bridge.folder)
    let record = MachineRecord(generation: 1, nonce: bridge.nonce)
    let subject = try #require(scene.link.subjects).machineRecord(scene.one.machine)
    scene.server.stored = "whs."
    scene.server.log.append(HubMessage(subject, record.bytes))
    bridge.recorded = (record, 1)
    (bridge.bootTime, bridge.ownBootTime) = (0, present + 3600 * 1_000_000_000)
    return record
  }
}
