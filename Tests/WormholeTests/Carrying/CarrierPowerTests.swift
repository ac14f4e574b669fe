import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// What a carrier leaves on the disk before a power cut, and what it finds damaged or misdated.
@Suite(.blocking) struct CarrierPowerTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    meeting = try Meeting()
    carrier = try Carrier(meeting.another())
    printer = try carrier.proxy(of: .member("printer"), on: Self.machine)
  }

  /// Sends a message to the printer; returns its name there.
  private func send(_ number: Int) throws -> MessageName {
    try meeting.container.peer("printer").send(number, .quick())
    return try #require(try printer.waiting().last)
  }

  /// The file that waits again is a new one, and the earlier file is removed.
  @Test(arguments: [nil, "printer/inbox"])
  func aMessageIsPutBackBeforeItsEarlierFileGoes(_ path: String?) throws {
    let name = try send(1)
    #expect(try printer.claim(name))
    let rule = FaultRule(.fsync, path: path, persistent: true, .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) { error = try failure { try printer.putBack(name) } }
    #expect(error?.errno == Errno.inputOutput.rawValue)
    #expect(try printer.claimed() == [name])
    try printer.putBack(name)
    #expect(try printer.claimed() == [])
    #expect(try printer.waiting() == [name])
  }

  /// After a power cut, the name would be the other machine's again.
  ///
  /// A process that ended between the removal and the sync leaves the sync to the next one.
  @Test func aReturnedNameIsSynced() throws {
    let rule = FaultRule(.fsync, path: "members/printer", persistent: true, .fail(.inputOutput))
    for _ in 1...2 {
      var error: WormholeError?
      try FaultPoints.with([rule]) { error = try failure { try printer.release() } }
      #expect(error?.errno == Errno.inputOutput.rawValue)
    }
    let calls = try FaultPoints.with { try printer.release() }
    #expect(calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/members/printer") })
    #expect(try !meeting.names("members/printer").contains(MemberDirectory.elsewhereName))
  }

  /// A process that ended between the rename and the sync leaves the sync to the next one.
  @Test func aContextThatWasDeliveredBeforeIsSynced() throws {
    let storage = meeting.container.storage
    let directory = try storage.bridge(["in"])
    try storage.replace("1", in: directory.descriptor, by: Array("context".utf8), sync: false)
    func deliver() throws {
      try carrier.deliverContext("1", in: directory, from: "phone", to: "scanner")
    }
    let rule = FaultRule(
      .fsync, path: "scanner/context", persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      for _ in 1...2 {
        let error = try failure { try deliver() }
        #expect(error.errno == Errno.inputOutput.rawValue)
      }
    }
    #expect(try meeting.names("members/scanner/context") == ["phone,next"])
    try deliver()
    #expect(try directory.descriptor.names() == [])
  }

  /// Members of this machine receive such a message at once, too.
  @Test func aMessageWithAStampOfTheFarFutureIsCarried() throws {
    let name = try send(1)
    let stamp = MessageStamp(epoch: name.stamp.epoch + 7, nanoseconds: 1)
    let misdated = name.stamped(stamp)
    let inbox = try meeting.folder("members/printer/inbox")
    try inbox.rename(name.text, to: inbox, misdated.text)
    #expect(try printer.waiting() == [misdated])
    #expect(try printer.claim(misdated))
  }

  // MARK: Channels

  private func overwrite(_ channel: String) throws {
    try? meeting.folder("channels/\(channel)").unlink("kept.plist")
    try meeting.overwrite("channels/\(channel)/value.plist", Array("damaged".utf8))
  }

  private var content: Carrier.ChannelContent {
    Carrier.ChannelContent(version: 3, sent: Date(), writer: "w", value: 1, until: nil)
  }

  @Test func aDamagedCopyBecomesAChannelWithTheContentOfItsFormerHome() throws {
    try carrier.store(content, of: "seats", from: Self.machine, changesTo: nil)
    try overwrite("seats")
    let seats = meeting.container.channel("seats", of: Int.self)
    #expect(try failure { _ = try seats.value }.code == .damaged)
    for _ in 1...2 {
      try carrier.adopt(Carrier.ChannelLegacy(content, ["a": "x"]), as: "seats")
      #expect(try seats.value == 1)
      #expect(try seats.metadata?.version == 4)
      #expect(try seats.metadata?.home == nil)
    }
    try seats.put(2)
    #expect(try seats.value == 2)
  }

  /// Its next put mends it, with a version of its own.
  @Test func aDamagedChannelOfThisMachineStaysAsItIs() throws {
    let seats = meeting.container.channel("seats", of: Int.self)
    try seats.put(7, durability: .process)
    try overwrite("seats")
    try carrier.adopt(Carrier.ChannelLegacy(content, [:]), as: "seats")
    #expect(try failure { _ = try seats.value }.code == .damaged)
  }

  /// A change that is found made, or a channel that is found taken, may not be on the disk yet.
  ///
  /// Otherwise a power cut would undo what another machine counts as done.
  @Test func whatIsFoundMadeIsSynced() throws {
    func make(_ operation: String) throws -> Carrier.ChannelAnswer {
      try carrier.make(
        Carrier.ChannelChange(channel: "seats", operation: operation, expected: nil, value: 1),
        for: Self.machine)
    }
    // From now on a change makes two syncs: the file's and the directory's.
    for operation in ["a", "b"] { #expect(try make(operation).result == .made) }
    let first = FaultRule(.fsync, number: 2, .fail(.inputOutput))
    let all = FaultRule(.fsync, path: "/channels/seats", persistent: true, .fail(.inputOutput))
    for rule in [first, all] {
      var error: WormholeError?
      try FaultPoints.with([rule]) { error = try failure { _ = try make("c") } }
      #expect(error?.code == .notDurable)
    }
    let answer = try make("c")
    #expect(answer.result == .made)
    let version = try meeting.container.channel("seats", of: Int.self).metadata?.version
    #expect(answer.version == version)
    let legacy = Carrier.ChannelLegacy(content, [:])
    var adopting: WormholeError?
    try FaultPoints.with([all]) {
      adopting = try failure { try carrier.adopt(legacy, as: "seats") }
    }
    #expect(adopting?.code == .notDurable)
  }

  // MARK: Queues

  /// The two machines may allow different numbers of attempts.
  @Test func aDeadLetterOfALoanStatesTheAttemptsThatWereMade() throws {
    let jobs = meeting.container.queue("jobs", of: Int.self)
    let lent = try LentQueue("jobs", meeting.another { $0.mailbox.attempts = 5 }) {}
    try jobs.send(1, .quick())
    lent.setRoom(1)
    let job = try eventually("it is claimed") { lent.fresh.first }
    lent.bound([job.id])
    lent.setRoom(0)
    #expect(try lent.end(job.id, .dead(reason: "no paper", attempts: 2)))
    let letters = try jobs.deadLetters
    #expect(letters.map(\.reason) == ["no paper"])
    #expect(letters.map(\.attempts) == [2])
    lent.stop()
  }
}
