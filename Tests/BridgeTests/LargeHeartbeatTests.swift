import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole
@testable import WormholeBridge
@testable import WormholeRelay

/// A machine has more to state than a message of the servers has room for.
@Suite(.blocking) struct LargeHeartbeatTests {
  /// As the servers have it by default.
  private static let limit = 1 << 20

  private func members(_ count: Int) throws -> [Profile] {
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    return (0..<count).map { number in
      let info = ["key": "\(number) " + String(repeating: "x", count: 4000)]
      return Profile(
        MemberProfile(of: "ü\(number)", digits, program: "p", since: Date(), info: info), .running)
    }
  }

  private func work(_ queues: Int) -> [String: WorkerStatement] {
    var work: [String: WorkerStatement] = [:]
    for queue in 0..<queues {
      let held = (0..<1024).map { "0123456789abcdef.\(queue).\($0)" }
      work["q\(queue)"] = WorkerStatement(home: "0123456789abcdef", room: 1024, held: Set(held))
    }
    return work
  }

  private func beat(_ content: inout HeartbeatContent) throws -> Heartbeat {
    let bytes = try #require(
      content.encoded(atMost: Self.limit) { content in
        Heartbeat.bytes(
          generation: 1, content.members, full: content.full, hasInfo: content.hasInfo,
          channels: content.channels, queues: content.queues, heirs: content.heirs,
          late: content.late, work: content.work)
      })
    #expect(bytes.count <= Self.limit)
    return try #require(Heartbeat(bytes, .now))
  }

  @Test func whatFitsIsStatedWhole() throws {
    var content = HeartbeatContent(try members(10), late: ["late"], work: work(1))
    let beat = try beat(&content)
    #expect(content.omission == nil)
    #expect(beat.running.count == 10 && beat.running.values.allSatisfy { $0.info.count == 1 })
    #expect(beat.late == ["late"] && beat.work == work(1))
  }

  @Test func theInformationOfMembersIsLeftOutFirst() throws {
    var content = HeartbeatContent(try members(1000), late: ["late"], work: work(2))
    let beat = try beat(&content)
    #expect(content.omission == HeartbeatContent.withoutInfo)
    #expect(beat.running.count == 1000 && beat.running.values.allSatisfy(\.info.isEmpty))
    #expect(beat.late == ["late"] && beat.work == work(2))
  }

  /// The home would lend messages without end to a machine that does not state them.
  @Test func membersAndLentMessagesShareTheRest() throws {
    let all = try members(5000)
    var content = HeartbeatContent(all, late: ["late"], work: work(50))
    let beat = try beat(&content)
    #expect(content.omission == HeartbeatContent.withoutSome)
    let names = all.map(\.name).sorted()
    #expect(beat.running.count > 1000)
    #expect(Set(beat.running.keys) == Set(names.prefix(beat.running.count)))
    #expect(beat.work.count == 50 && beat.work.values.contains { $0.held.count == 1024 })
    #expect(beat.work.values.allSatisfy { $0.room == $0.held.count })
  }

  /// The longest names take the most bytes if one of their characters is not in ASCII.
  private func names(_ count: Int) -> [String] {
    (0..<count).map { "ü\($0)" + String(repeating: "x", count: 180) }
  }

  private func terms(_ count: Int) -> [String: Int] {
    Dictionary(uniqueKeysWithValues: names(count).map { ($0, 1) })
  }

  /// The machine would look absent if the servers refused its heartbeats.
  @Test func theVersionsOfChannelsAreLeftOutBeforeMembers() throws {
    let heir = Heartbeat.Heir(machine: "0123456789abcdef", term: 2, before: [])
    var content = HeartbeatContent(
      try members(10), full: ["bob"], channels: terms(5000), queues: terms(1000),
      heirs: ["given": heir], late: ["late"], work: work(1))
    let beat = try beat(&content)
    #expect(content.omission == HeartbeatContent.withoutSome)
    #expect(beat.running.count == 10 && beat.late == ["late"] && beat.work == work(1))
    #expect(beat.full == ["bob"] && beat.heirs == ["given": heir])
    #expect(beat.queues.count == 1000 && beat.channels.count > 1000)
    #expect(beat.channels.count < 5000)
  }

  @Test func namesHaveAQuarterOfTheBytes() throws {
    var content = HeartbeatContent(
      try members(5000), full: Set(names(10)), channels: terms(5000), queues: terms(5000),
      work: work(50))
    let beat = try beat(&content)
    #expect(beat.running.count > 1000 && beat.work.count == 50 && beat.full.count == 10)
    #expect(beat.work.values.contains { $0.held.count == 1024 })
    #expect((500..<700).contains(beat.queues.count))
    #expect(Set(beat.queues.keys) == Set(names(5000).sorted().prefix(beat.queues.count)))
    #expect(beat.channels.count <= 1)
  }

  /// Each of the parts alone is too large: heirs, full inboxes, workers of queues.
  @Test func noPartMakesABeatThatIsRefused() throws {
    let all = names(5000)
    let machine = "0123456789abcdef"
    let heir = Heartbeat.Heir(
      machine: machine, term: 2, before: Array(repeating: machine, count: 16))
    let statement = WorkerStatement(home: machine, room: 1, held: ["7.1"])
    let contents = [
      HeartbeatContent([], full: Set(all)),
      HeartbeatContent([], heirs: Dictionary(uniqueKeysWithValues: all.map { ($0, heir) })),
      HeartbeatContent([], late: Set(all)),
      HeartbeatContent([], work: Dictionary(uniqueKeysWithValues: all.map { ($0, statement) })),
    ]
    for var content in contents {
      let beat = try beat(&content)
      let count = beat.full.count + beat.heirs.count + beat.late.count + beat.work.count
      #expect((500..<5000).contains(count))
    }
  }

  /// Other machines would give back what they are lent of a queue without a home.
  @Test func theBridgeDoesNotLendOfAQueueThatItDoesNotState() throws {
    let scene = try ConnectedBridge()
    let (bridge, link) = (scene.one.bridge, scene.link)
    for name in names(5000) + ["üz"] { bridge.queues.entries[name] = QueueList.Entry() }
    bridge.beat(link, .now)
    #expect(bridge.trouble == HeartbeatContent.withoutSome)
    #expect(link.echo.unheardBeats == 1, "the heartbeat is sent")
    let last = "üz"
    #expect(bridge.queues.unstated.contains(last))
    #expect(
      bridge.queueStatus[last]?["trouble"]?.stringValue == HeartbeatContent.withoutQueue)
    bridge.queues.settled = [last]
    let work = [last: WorkerStatement(home: scene.one.machine, room: 1, held: [])]
    try scene.one.hear("000000000000000b", work: work)
    #expect(bridge.queues.lenders.isEmpty)
    bridge.queues.entries = [last: QueueList.Entry()]
    link.nextBeat = Instant(nanoseconds: 0)
    bridge.beat(link, .now)
    #expect(bridge.trouble == nil && bridge.queues.unstated == [])
    try scene.one.hear("000000000000000b", work: work)
    #expect(bridge.queues.lenders.count == 1)
  }

  /// The trouble is over when the members have ended.
  @Test func theBridgeStatesWhatItsHeartbeatLeavesOut() throws {
    let scene = try ConnectedBridge()
    let (bridge, link) = (scene.one.bridge, scene.link)
    let record = StreamMessage(
      subject: "", headers: [], payload: Home.bytes(scene.one.machine), sequence: 1, timestamp: 1,
      pending: 0)
    for member in try members(400) {
      bridge.locals[member.name] = member
      bridge.homes[member.name] = Home(record)
    }
    bridge.beat(link, .now)
    #expect(bridge.trouble == HeartbeatContent.withoutInfo)
    #expect(link.echo.unheardBeats == 1, "the heartbeat is sent")
    bridge.locals = [:]
    link.nextBeat = Instant(nanoseconds: 0)
    bridge.note(trouble: "another trouble")
    bridge.beat(link, .now)
    #expect(bridge.trouble == "another trouble")
    bridge.note(trouble: HeartbeatContent.withoutInfo)
    link.nextBeat = Instant(nanoseconds: 0)
    bridge.beat(link, .now)
    #expect(bridge.trouble == nil)
  }
}
