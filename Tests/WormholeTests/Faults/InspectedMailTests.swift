import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The inspection of messages tells the library's own files from foreign files.
@Suite(.blocking) struct InspectedMailTests {
  /// A message whose sender has chosen the ID has a second name, and a directory of files has a
  /// record of its size.
  @Test func theLibrarysOwnNamesAmongTheFilesAreNoFindings() throws {
    let pair = try Pair()
    let container = pair.meeting.container
    try pair.phone.send(1, .quick { $0.id = "one" })
    try #require(try pair.files("files").contains { $0.hasPrefix("id,") })
    let own = container.inspectMail()
    #expect(own.contains { $0.what == "1 message waits" })
    #expect(own.filter { $0.what.contains("foreign") } == [])
    try pair.meeting.folder.write("", to: "c/members/watch/files/mine")
    let foreign = container.inspectMail().filter { $0.what.contains("foreign") }
    #expect(foreign.count == 1)
    #expect(foreign.allSatisfy { $0.subject.hasSuffix("members/watch/files/mine") })
  }

  /// The remains of a guest that does not run are the subject of another inspection.
  @Test func onlyGuestsThatRunAreInspected() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let (own, dead) = ("guests/\(guest.address)", "guests/0123456789abcdef")
    let folder = meeting.folder
    for name in ["", "/live"] {
      try folder.descriptor.makeDirectory("c/\(dead)\(name)", mode: 0o700)
    }
    for place in [own, dead] { try folder.write("", to: "c/\(place)/live/mine") }
    let findings = meeting.container.inspectMail()
    #expect(findings.count == 1)
    #expect(
      findings.allSatisfy {
        $0.subject.hasSuffix("\(own)/live/mine") && $0.what.contains("foreign")
      }, "\(findings)")
    guest.leave()
  }

  /// A reason remains if a process dies while it retries or discards the letter.
  @Test func reasonsWithoutLettersHideNoLetterAndAreNotCounted() throws {
    let pair = try Pair()
    let folder = pair.meeting.folder
    func name(_ number: Int) -> String {
      MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Int64(number)), wantsReceipt: false,
        count: 1, id: "number\(number)", from: "phone"
      ).text
    }
    _ = try pair.meeting.container.storage.member("watch").part(.dead)
    for number in 1...21 { try folder.write("", to: "c/members/watch/dead/\(name(number)),reason") }
    try folder.write("", to: "c/members/watch/dead/\(name(22))")
    let findings = pair.meeting.container.inspectMail().filter {
      $0.subject.hasSuffix("members/watch/dead")
    }
    #expect(findings.count == 1, "\(findings)")
    #expect(findings.first?.what.hasPrefix("message 'number22' is a dead letter") == true)
  }

  /// An urgent message is received before older ones, and does not hide how long they have waited.
  @Test func theOldestMessageOfAMailboxIsNotTheMostUrgent() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    let pair = try Pair { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let first = try pair.phone.send(1, .quick())
    clock.withLock { $0 += 60_000_000_000 }
    let urgent = try pair.phone.send(2, .quick { $0.isUrgent = true })
    let queue = try pair.phone.queue
    let sentFirst = try #require(queue.first { $0.id == first.id }?.sentAt)
    let sentUrgent = try #require(queue.first { $0.id == urgent.id }?.sentAt)
    try #require(sentUrgent > sentFirst)
    var oldest: [Date?] = []
    try pair.meeting.container.forEachMailbox { if $0.name == "watch" { oldest.append($0.oldest) } }
    #expect(oldest == [sentFirst])
  }

  /// A message with a chosen ID has a second name, and the record of the inbox has a size.
  @Test func theBytesOfAMailboxAreThoseOfItsMessagesAndTheirFiles() throws {
    let pair = try Pair()
    try pair.phone.send(1, .quick { $0.id = "one" })
    try pair.meeting.folder.write("content", to: "file")
    try pair.phone.send(file: pair.meeting.folder.path + "/file", .quick())
    let messages = try pair.files("inbox")
    try #require(messages.count == 2)
    let sizes = try messages.map { try pair.meeting.bytes(of: "members/watch/inbox/\($0)").count }
    var found: [Int] = []
    try pair.meeting.container.forEachMailbox { if $0.name == "watch" { found.append($0.bytes) } }
    #expect(found == [sizes.reduce(0, +) + 7])
  }

  /// A queue is removed after the names were listed, and before its turn comes.
  @Test func aMailboxThatVanishesIsLeftOutAlone() throws {
    let meeting = try Meeting()
    let container = meeting.container
    for name in ["a", "b", "c"] { try container.queue(name, of: Int.self).send(1, .quick()) }
    try container.peer("watch").send(1, .quick())
    var found: [String] = []
    try container.forEachMailbox {
      found.append($0.name)
      if $0.name == "a" {
        try meeting.folder("queues").rename("b", to: meeting.folder.descriptor, "away")
      }
    }
    #expect(found == ["a", "c", "watch"])
  }
}
