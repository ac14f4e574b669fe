import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Values that expire.
@Suite(.blocking) struct TimeToLiveTests {
  /// The wall clock of all processes here, which the test moves.
  private let clock: Monitor<Int64>
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var online: Channel<Int> { container.channel("online") }
  private let file = "channels/online/value.plist"

  init() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    self.clock = clock
    meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
  }

  private func pass(_ time: Duration) { clock.withLock { $0 += time.inNanosecondsClamped } }

  private func damage() throws {
    var bytes = try meeting.bytes(of: file)
    bytes[bytes.count / 2] ^= 1
    try meeting.overwrite(file, bytes)
  }

  // MARK: Readers

  @Test func anExpiredValueIsNone() throws {
    #expect(try online.put(1, timeToLive: .seconds(10)) == 1)
    #expect(try online.value == 1)
    let until = try #require(try online.metadata?.expiresAt)
    #expect(abs(until.timeIntervalSince(Date(sinceEpoch: clock.withLock { $0 })) - 10) < 0.001)
    pass(.seconds(9))
    #expect(try online.value == 1)
    #expect(try online.metadata?.isCleared == false)
    pass(.seconds(2))
    #expect(try online.value == nil)
    #expect(try container.unshaped("online")?.value == nil)
    let latest = try #require(try online.latest)
    #expect(latest.value == nil && latest.version == 1)
    #expect(latest.metadata.isCleared && !latest.metadata.isRecovered)
    #expect(latest.metadata.expiresAt == until)
    // Another type is no error without a value, as after a clear.
    #expect(try container.channel("online", of: [String].self).value == nil)
    #expect(try container.channel("online", default: 7).value == 7)
  }

  @Test func aTimeToLiveIsAboveZero() throws {
    for time in [Duration.zero, .seconds(-1)] {
      #expect(try failure { try online.put(1, timeToLive: time) }.code == .invalidValue)
    }
    #expect(try online.latest == nil)
    try online.put(1, timeToLive: .seconds(Int64.max))
    #expect(try online.value == 1)
  }

  // MARK: Changes

  @Test func anUpdateStartsFromNoneAndVersionsGoOn() throws {
    try online.put(41, timeToLive: .seconds(10))
    #expect(try online.update { $0 = ($0 ?? 0) + 1 } == 42)
    let until = try online.metadata?.expiresAt
    #expect(until != nil, "an update keeps the moment")
    pass(.seconds(11))
    #expect(try online.value == nil)
    #expect(try online.update { $0 = ($0 ?? 0) + 1 } == 1)
    #expect(try online.latest?.version == 3)
    #expect(try online.metadata?.expiresAt == nil, "the new value does not expire")
    pass(.seconds(1000))
    #expect(try online.value == 1)
  }

  @Test func anUpdateOfSeveralKeepsTheMoment() throws {
    let other = container.channel("other", of: Int.self)
    try online.put(1, timeToLive: .seconds(10))
    try container.update(online, other) { ($0, $1) = (($0 ?? 0) + 1, 5) }
    pass(.seconds(11))
    #expect(try online.value == nil)
    #expect(try other.value == 5)
    try container.update([online, other]) { $0 = $0.map { ($0 ?? 0) + 1 } }
    #expect(try (online.value, other.value) == (1, 6))
  }

  @Test func aPutReplacesTheMoment() throws {
    try online.put(1, timeToLive: .seconds(10))
    try online.put(2)
    pass(.seconds(11))
    #expect(try online.value == 2)
    try online.put(3, timeToLive: .seconds(10), ifVersion: 2)
    #expect(
      try failure { try online.put(4, timeToLive: .seconds(1), ifVersion: 2) }.code == .conflict)
    pass(.seconds(11))
    // The version of an expired value may be expected.
    #expect(try online.put(5, ifVersion: 3) == 4)
  }

  /// Without a time to live, the file is as before times to live.
  @Test func aValueWithoutTimeHasNoField() throws {
    try online.put(1)
    let list = try BinaryPropertyList.decode(meeting.bytes(of: file))
    #expect(list.dictionaryValue?.keys.sorted() == ["from", "sent", "value", "version"])
    try online.put(1, timeToLive: .seconds(1))
    let timed = try BinaryPropertyList.decode(meeting.bytes(of: file))
    #expect(timed.dictionaryValue?.keys.sorted() == ["from", "sent", "until", "value", "version"])
  }

  // MARK: Watchers

  /// The alarm follows the machine's clock, and so does the wall clock here.
  @Test func watchersAreNotifiedOfTheExpiry() throws {
    let container = try meeting.another()
    let online = container.channel("online", of: Int.self)
    var time = Duration.milliseconds(150)
    let watches = try eventually("all watches begin before the expiry") { () -> ExpiryWatches? in
      // A busy machine may need more time.
      time = time * 2
      let watches = try ExpiryWatches(container, expiringAfter: time)
      if try online.value == 1 { return watches }
      watches.stop()
      return nil
    }
    #expect(throws: Never.self) {
      for list in [watches.heard, watches.prefixed, watches.late] {
        try list.wait("the expiry") { $0.last?.value == nil && !$0.isEmpty }
      }
    }
    #expect(watches.late.all.map(\.value) == [nil])
    #expect(watches.heard.all.last?.version == watches.version)
    #expect(watches.heard.all.last?.metadata.isCleared == true)
    // A later value sets the alarm anew.
    let next = try online.put(2, timeToLive: .milliseconds(100))
    #expect(throws: Never.self) {
      try watches.late.wait("the second expiry") {
        $0.last?.version == next && $0.last?.value == nil
      }
    }
    watches.stop()
  }

  /// The three kinds of watches of a value that expires.
  private struct ExpiryWatches {
    let heard = Heard<Snapshot<Int>>()
    let prefixed = Heard<Snapshot<Int>>()
    let late = Heard<Snapshot<Int>>()
    let version: Int
    private let all: [Subscription]

    init(_ container: SharedContainer, expiringAfter time: Duration) throws {
      let (heard, prefixed, late) = (heard, prefixed, late)
      let online = container.channel("online", of: Int.self)
      version = try online.put(1, timeToLive: time)
      all = [
        try online.watch { heard.add($0) },
        try container.watch(prefix: "on", of: Int.self) { prefixed.add($0) },
        try online.watch(initial: false) { late.add($0) },
      ]
    }

    func stop() { for watch in all { watch.stop() } }
  }

  // MARK: Damage and room

  @Test func anExpiredKeptValueIsNoFallback() throws {
    try online.put(1, timeToLive: .seconds(10), durability: .power)
    try online.put(2, durability: .power)
    try damage()
    #expect(try online.value == 1)
    #expect(try online.metadata?.isRecovered == true)
    pass(.seconds(11))
    let error = #expect(throws: WormholeError.self) { _ = try online.value }
    #expect(error?.code == .damaged)
    #expect(error?.reason.contains("the kept value has expired") == true)
    #expect(try failure { try online.update { $0 = 1 } }.code == .damaged)
    #expect(try online.put(3) > 2)
    #expect(try online.value == 3)
  }

  /// A repair would make a clear of the damage.
  @Test func anExpiredKeptValueIsNoRepair() throws {
    try online.put(1, timeToLive: .seconds(10), durability: .power)
    try online.put(2, durability: .power)
    try damage()
    pass(.seconds(11))
    #expect(try container.repair().isEmpty)
    #expect(try failure { _ = try online.value }.code == .damaged)
    #expect(try online.put(3) > 2)
  }

  /// An inspection states what readers get.
  @Test func anExpiredKeptValueIsNotReportedAsReadable() throws {
    func finding() throws -> WormholeContainerStorage.Diagnosis? {
      try container.inspect().first { $0.subject == file }
    }
    try online.put(1, timeToLive: .seconds(10), durability: .power)
    try online.put(2, durability: .power)
    try damage()
    let readable = try #require(try finding())
    #expect(readable.what.hasSuffix("; readers get the previous value"))
    #expect(readable.isRepairable)
    pass(.seconds(11))
    let expired = try #require(try finding())
    #expect(expired.what.hasSuffix(", and the previous value has expired"), "\(expired.what)")
    #expect(expired.advice == "put a new value; the damaged file moves to damaged/")
    #expect(!expired.isRepairable)
    let limited = try container.inspect(within: .seconds(60)).findings
    #expect(limited.contains(expired))
  }

  @Test func theRoomIsFreedOnRequest() throws {
    let other = container.channel("other", of: Int.self)
    try online.put(1, timeToLive: .seconds(10), durability: .power)
    try other.put(2, timeToLive: .seconds(100))
    #expect(container.sweepExpired(isLooking: true).isEmpty)
    #expect(container.sweepExpired(isLooking: false).isEmpty)
    pass(.seconds(11))
    let found = container.sweepExpired(isLooking: true)
    #expect(found.map(\.subject) == ["channels/online"])
    #expect(found.allSatisfy { $0.severity == .note && $0.isRepairable })
    #expect(try container.expiredChannels().map(\.name) == ["online"])
    #expect(container.sweepExpired(isLooking: false).map(\.subject) == ["channels/online"])
    #expect(container.sweepExpired(isLooking: true).isEmpty)
    #expect(try online.latest?.version == 2)
    let list = try BinaryPropertyList.decode(meeting.bytes(of: file))
    #expect(list.dictionaryValue?.keys.contains("value") == false)
    #expect(try other.value == 2)
    #expect(try !container.clearExpired("other", by: Date(sinceEpoch: clock.withLock { $0 })))
  }

  /// The clear of the first value fails, and the second value is replaced before its turn comes.
  @Test func onlyWhatWasClearedIsReportedAsCleared() throws {
    let (clock, renewed) = (clock, Monitor<Channel<Int>?>(nil))
    let meeting = try Meeting { options in
      options.environment.sinceEpoch = { clock.withLock { $0 } }
      // The log entry of the first failure comes between the two clears.
      options.log = { entry in
        let channel = renewed.withLock { $0 }
        if entry.level == .error { _ = try? channel?.put(2) }
      }
    }
    defer { renewed.withLock { $0 = nil } }
    let container = meeting.container
    let channels = ["a", "b"].map { container.channel($0, of: Int.self) }
    for channel in channels { try channel.put(1, timeToLive: .seconds(10)) }
    pass(.seconds(11))
    renewed.withLock { $0 = channels[1] }
    var cleared: [String]?
    let rule = FaultRule(
      .rename, path: "channels/a/value.plist", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      cleared = container.sweepExpired(isLooking: false).map(\.subject)
    }
    #expect(try channels[1].value == 2)
    #expect(cleared == [])
    #expect(container.sweepExpired(isLooking: true).map(\.subject) == ["channels/a"])
  }

  // MARK: Copies

  @Test func aCopyExpiresToo() throws {
    let carrier = try Carrier(container)
    try online.put(1, timeToLive: .seconds(10))
    let content = try carrier.content(of: "online")
    try carrier.store(content, of: "copy", from: "0123456789abcdef", changesTo: nil)
    let copy = container.channel("copy", of: Int.self)
    #expect(try copy.value == 1)
    pass(.seconds(11))
    #expect(try copy.value == nil)
    // Its home decides when to clear it.
    #expect(try container.expiredChannels().map(\.name) == ["online"])
  }

  @Test func aChangeOfACopyHasATime() throws {
    let carrier = try Carrier(container)
    var change = Carrier.ChannelChange(
      channel: "online", operation: "a", expected: nil, value: .integer(4))
    change.until = Date(sinceEpoch: clock.withLock { $0 }).addingTimeInterval(10)
    #expect(try carrier.make(change, for: "m").result == .made)
    #expect(try online.value == 4)
    change.operation = "b"
    change.expected = 9
    #expect(try carrier.make(change, for: "m").until == change.until)
    pass(.seconds(11))
    #expect(try online.value == nil)
  }
}
