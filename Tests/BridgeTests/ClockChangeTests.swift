import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
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
}
