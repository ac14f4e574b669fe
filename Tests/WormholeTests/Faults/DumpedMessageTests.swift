import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// The messages that a dump contains: interrupted ones, and those whose file is not there.
@Suite(.blocking) struct DumpedMessageTests {
  private let meeting: Meeting
  private let clock: Monitor<Int64>
  private let peer: Peer

  init() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    self.clock = clock
    meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    peer = meeting.container.peer("watch")
  }

  private func home() throws -> MemberDirectory {
    try #require(try meeting.container.storage.existingMember("watch"))
  }

  private static func dumped(
    _ container: SharedContainer
  ) throws -> (messages: [PortableMessage], failures: [WormholeError]) {
    var (messages, failures): ([PortableMessage], [WormholeError]) = ([], [])
    try container.forEachPortableMessage { message, _ in
      messages.append(message)
    } failure: { error in
      failures.append(error)
    }
    return (messages, failures)
  }

  /// A message that was received in time never expires afterwards.
  @Test func anInterruptedMessageDoesNotExpire() throws {
    let options = SendOptions.quick { $0.timeToLive = .seconds(60) }
    let begun = try peer.send(1, options)
    let waiting = try peer.send(2, options)
    let home = try home()
    #expect(try home.claim(ClaimedName(begun.name, attempt: 1)))
    let early = try Self.dumped(meeting.container).messages
    #expect(early.map(\.id) == [begun.id, waiting.id])
    #expect(early.map { $0.expires == nil } == [true, false])
    clock.withLock { $0 += 7_200_000_000_000 }
    #expect(try Self.dumped(meeting.container).messages.map(\.id) == [begun.id])
    #expect(try peer.queue.map(\.id) == [begun.id])
  }

  /// A dead letter that was retried was received in time as well.
  @Test func aRetriedMessageDoesNotExpire() throws {
    let sent = try peer.send(1, .quick { $0.timeToLive = .seconds(60) })
    let home = try home()
    #expect(try home.move(sent.name.text, from: .inbox, .dead, as: sent.name.text))
    #expect(try peer.retry(id: sent.id))
    clock.withLock { $0 += 7_200_000_000_000 }
    #expect(try Self.dumped(meeting.container).messages.map(\.id) == [sent.id])
  }

  /// One damaged message does not end the dump.
  @Test func aMessageWithoutItsFileIsReportedAndLeftOut() throws {
    let folder = try TemporaryDirectory()
    try makeFile(folder.path + "/f", size: 10)
    let first = try peer.send(file: folder.path + "/f", .quick())
    let second = try peer.send(2, .quick())
    #expect(try home().remove(first.name.fileName, from: .files))
    let (messages, failures) = try Self.dumped(meeting.container)
    #expect(messages.map(\.id) == [second.id])
    #expect(failures.map(\.code) == [.damaged])
    #expect(failures.map(\.subject) == [first.id])
  }

  /// The receiver settles the message, and removes its file, between the two reads of the dump.
  @Test func aMessageThatIsSettledMeanwhileIsLeftOut() throws {
    let folder = try TemporaryDirectory()
    try makeFile(folder.path + "/f", size: 10)
    let first = try peer.send(file: folder.path + "/f", .quick())
    let second = try peer.send(2, .quick())
    let (pause, results) = (FaultPause(), Heard<[String]>())
    let rule = FaultRule(.open, path: "files/\(first.name.fileName)", .pause(pause))
    let dumping = try Thread("dumping") { [container = meeting.container] in
      FaultPoints.with([rule]) {
        let found = try? Self.dumped(container)
        results.add(found.map { $0.messages.map(\.id) + $0.failures.map(\.reason) } ?? ["an error"])
      }
    }
    try eventually("the dump has come to the file") { pause.isReached }
    #expect(try peer.cancel(id: first.id) == .cancelled)
    pause.open()
    dumping.join()
    #expect(results.all == [[second.id]])
  }

  /// Each message of a batch gets the batch's ID and its index, which is too long here.
  @Test func aBatchWithTheLongestIdentifierIsRestored() throws {
    let longest = String(repeating: "x", count: MessageName.longestIdentifier)
    try peer.send(contentsOf: [1, 2], .quick { $0.id = longest })
    let messages = try Self.dumped(meeting.container).messages
    #expect(messages.map(\.id) == [longest + ".0", longest + ".1"])
    let copy = meeting.container.peer("copy")
    for message in messages { try copy.restore(message, file: nil, durability: .process) }
    #expect(try Set(copy.queue.map(\.id)).subtracting([longest]).count == 2)
  }

  /// The sender has given the ID once more, after the end of the first message.
  @Test func aDeadLetterIsRestoredBesideAMessageWithItsIdentifier() throws {
    let options = SendOptions.quick { $0.id = "one" }
    let first = try peer.send(1, options)
    let home = try home()
    #expect(try home.move(first.name.text, from: .inbox, .dead, as: first.name.text))
    try peer.send(2, options)
    let messages = try Self.dumped(meeting.container).messages
    #expect(messages.map(\.id) == ["one", "one"])
    #expect(messages.map { $0.death == nil } == [true, false])
    let copy = meeting.container.peer("copy")
    for message in messages { try copy.restore(message, file: nil, durability: .process) }
    #expect(try copy.queue.map(\.id) == ["one"])
    #expect(try copy.deadLetters.map(\.id) == ["one"])
  }
}
