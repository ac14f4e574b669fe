import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The epoch orders messages; a foreign lock on the marker keeps out at most messages.
@Suite(.blocking) struct EpochOrderTests {
  private let meeting: Meeting

  init() throws { meeting = try Meeting() }

  /// The same container, opened with another identifier of the boot.
  private func another(_ boot: String) throws -> SharedContainer {
    try meeting.another { $0.environment.bootIdentifier = { boot } }
  }

  /// The numbers as a member receives them that joins now.
  private func receive(_ count: Int, _ container: SharedContainer) throws -> [Handed] {
    let heard = Heard<Handed>()
    let member = try container.join(as: "watch")
    let receiving = try member.note(heard)
    try heard.wait("they come") { $0.count >= count }
    receiving.stop()
    member.leave()
    return heard.all
  }

  @Test func sendersThatKnowTheMachineByOtherNamesKeepTheOrder() throws {
    let holes = try ["host", "one", "two"].map { try another($0) }
    for number in 1...12 { try holes[number % 3].peer("watch").send(number, .quick()) }
    #expect(try receive(12, try another("three")) == (1...12).map { Handed($0) })
  }

  @Test func whatWasSentBeforeAStartComesFirstAndIsMarked() throws {
    try another("before").peer("watch").send(1, .quick())
    let container = try meeting.another {
      $0.environment.bootIdentifier = { "after" }
      $0.environment.sinceBoot = { Clocks.sinceBoot / 2 }
    }
    try container.peer("watch").send(2, .quick())
    #expect(try receive(2, container) == [Handed(1, 1, marked: true), Handed(2)])
  }

  /// A power cut may have undone the acknowledgement of the message.
  @Test func aJobFromBeforeAStartIsMarked() throws {
    try another("before").queue("jobs", of: Int.self).send(1, .quick())
    let container = try meeting.another {
      $0.environment.bootIdentifier = { "after" }
      $0.environment.sinceBoot = { Clocks.sinceBoot / 2 }
    }
    let queue = container.queue("jobs", of: Int.self)
    try queue.send(2, .quick())
    let heard = Heard<Handed>()
    let working = try queue.work { _, message in heard.add(try Handed(message)) }
    // Tasks of other tests occupy the threads of the pool.
    try heard.wait("both", within: patience * 10) { $0.count == 2 }
    working.stop()
    #expect(heard.all == [Handed(1, 1, marked: true), Handed(2)])
  }

  /// The epoch of a restarted machine cannot be recorded on a full disk, and counts all the same.
  @Test func aMemberThatJoinsOnAFullDiskKnowsWhatWasSentBeforeTheStart() throws {
    try another("before").peer("watch").send(1, .quick())
    let container = try another("after")
    var joined: Member?
    let rule = FaultRule(
      .rename, path: "system/epoch/value.plist", persistent: true, .fail(.noSpace))
    try FaultPoints.with([rule]) { joined = try container.join(as: "watch") }
    #expect(try container.storage.recordedEpoch() == 1)
    let watch = try #require(joined)
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    try heard.wait("the message") { !$0.isEmpty }
    receiving.stop()
    watch.leave()
    #expect(heard.all == [Handed(1, 1, marked: true)])
  }

  /// The first message of a program may be sent in the middle of an update.
  @Test func theEpochIsFoundInsideAnUpdate() throws {
    let container = meeting.container
    try container.channel("c", of: Int.self).update { value in
      try container.peer("watch").send(7, .quick())
      value = 1
    }
    #expect(try receive(1, container) == [Handed(7)])
  }

  // MARK: Foreign locks

  private func lockedMarker() throws -> Descriptor {
    try Descriptor.open(path: meeting.path + "/container.plist", [.readWrite])
  }

  @Test func nobodyWaitsForAForeignFlock() throws {
    let marker = try lockedMarker()
    // A child that another test is spawning may hold a copy of a descriptor with a lock.
    try eventually("the marker is free") { try marker.tryLock(.exclusive) }
    let container = try meeting.another()
    try container.channel("c", of: Int.self).put(5)
    #expect(try container.channel("c", of: Int.self).value == 5)
    try container.peer("watch").send(1, .quick())
    #expect(try receive(1, container) == [Handed(1)])
  }

  @Test func aForeignExclusiveLockKeepsOnlyMessagesOut() throws {
    let marker = try lockedMarker()
    #expect(try marker.tryPresenceLock())
    let container = try meeting.another()
    try container.channel("c", of: Int.self).put(5)
    #expect(try container.channel("c", of: Int.self).value == 5)
    let error = try failure { try container.peer("watch").send(1, .quick()) }
    #expect(error.code == .refused)
    try marker.releasePresenceLock()
    try container.peer("watch").send(1, .quick())
    #expect(try receive(1, container) == [Handed(1)])
  }
}
