import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Full queues, foreign and damaged files, and directories that cannot be written.
@Suite struct MailTroubleTests {
  @Test(.blocking) func aFullInboxIsAnErrorOrWaitedFor() throws {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 10 }
    try pair.send(1...10)
    let begin = Instant.now
    #expect(try failure { try pair.send([11]) }.code == .full)
    let error = try failure { try pair.send([11]) { $0.whenFull = .wait(.milliseconds(30)) } }
    #expect(error.code == .full)
    #expect(Instant.now - begin >= .milliseconds(30))
    #expect(try pair.files("inbox").count == 10)
    // A waiting sender continues when the queue has space.
    let sent = Heard<Int>()
    let waiter = try Thread("waiting") {
      _ = try? pair.send([11]) { $0.whenFull = .wait(patience) }
      sent.add(11)
    }
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("all") { $0.count == 11 }
    waiter.join()
    #expect(heard.all == (1...11).map { Handed($0) })
    receiving.stop()
  }

  /// A message that expires or is cancelled is removed from its directory, and not moved.
  @Test(.blocking) func aWaitingSenderListensToRemovals() throws {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 1 }
    try pair.send([1])
    let inbox = try pair.meeting.folder("members/watch/inbox")
    let waiter = try Thread("waiting") {
      _ = try? pair.send([2]) { $0.whenFull = .wait(patience) }
    }
    var masks: [InotifyMask] = []
    try eventually("the sender waits") {
      masks = try watchMasks(of: inbox).filter { $0.contains(.movedFrom) }
      return !masks.isEmpty
    }
    #expect(masks.allSatisfy { $0.contains(.deleted) })
    let first = try pair.files("inbox")[0]
    try inbox.unlink(first)
    waiter.join()
    #expect(try pair.files("inbox").count == 1)
    #expect(try !pair.files("inbox").contains(first))
  }

  @Test(.blocking) func aFullInboxIsToldByItsBytes() throws {
    let pair = try Pair { $0.mailbox.maximumQueueBytes = 5000 }
    let text = String(repeating: "x", count: 2000)
    try pair.phone.send(text, .quick())
    try pair.phone.send(text, .quick())
    #expect(try failure { try pair.phone.send(text, .quick()) }.code == .full)
    #expect(try pair.files("inbox").count == 2)
  }

  @Test(.blocking, arguments: [false, true])
  func withTooManyDeadLettersTheMessageIsKept(_ inBatch: Bool) throws {
    let pair = try Pair {
      $0.mailbox.maximumDeadLetters = 1
      $0.mailbox.attempts = 1
    }
    try pair.send([1])
    if inBatch {
      try pair.phone.send(contentsOf: [2, 3], .quick())
    } else {
      try pair.send([2, 3])
    }
    try pair.send([4])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      let handed = try Handed(message)
      heard.add(handed)
      if handed.number < 3 { throw Refusal() }
    }
    try heard.wait("the last") { $0.last?.number == 4 }
    try eventually("only the kept one is in hand") { try pair.files("claimed").count == 1 }
    receiving.stop()
    #expect(try pair.meeting.container.peer("watch").deadLetters.count == 1)
    #expect(heard.all == (1...4).map { Handed($0) })
    // When the dead letters have space again, the next receiver dead-letters this message too.
    #expect(
      try pair.meeting.container.peer("watch").discard(
        id: pair.meeting.container.peer("watch").deadLetters[0].id))
    pair.watch.leave()
    let next = try pair.meeting.another { $0.mailbox.attempts = 1 }.join(as: "watch")
    let again = try next.receive { _ in throw Refusal() }
    try eventually("it is given up") {
      try pair.files("claimed") == []
        && pair.meeting.container.peer("watch").deadLetters.count == 1
    }
    again.stop()
  }

  /// Whatever files the directories contain, sent messages arrive, and no foreign file is removed.
  @Test(.blocking) func foreignFilesHoldUpNobody() throws {
    let pair = try Pair { $0.mailbox.retryDelay = .milliseconds(1) }
    try pair.send([1])
    let form = try pair.files("inbox")[0]
    /// A name of the proper form, sent before all others.
    func name(_ letter: Character) -> String {
      String(form.prefix(27)) + "forged\(letter)," + form.split(separator: ",").last!
    }
    for part in ["inbox", "claimed", "dead", "receipts"] {
      let folder = try pair.meeting.folder("members/watch/" + part)
      try folder.makeFIFO("pipe", mode: 0o600)
      try folder.makeSymbolicLink("link", to: "/dev/null")
      try folder.makeDirectory("folder", mode: 0o700)
      _ = try folder.open("garbage", [.writeOnly, .create], mode: 0o600)
    }
    let inbox = try pair.meeting.folder("members/watch/inbox")
    try inbox.makeFIFO(name("a"), mode: 0o600)
    try inbox.makeSymbolicLink(name("b"), to: "/dev/zero")
    try inbox.makeDirectory(name("c"), mode: 0o700)
    _ = try inbox.open(name("c") + "/film", [.writeOnly, .create], mode: 0o600)
    try inbox.open(name("d"), [.writeOnly, .create], mode: 0o600).write("bplist00 and so on")
    _ = try inbox.open(name("e"), [.writeOnly, .create], mode: 0o600)
    let claimed = try pair.meeting.folder("members/watch/claimed")
    try claimed.makeFIFO(name("f") + "~1", mode: 0o600)
    try claimed.makeDirectory(name("g") + "~3", mode: 0o700)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try pair.send([2])
    try heard.wait("the sound ones") { $0.count == 2 }
    #expect(heard.all == [Handed(1), Handed(2)])
    let dead = "abcdefg".map { name($0) }
    try eventually("the forged ones are given up") {
      Set(try pair.files("dead")).isSuperset(of: dead)
    }
    // A message reaches its handler before the acknowledgement.
    try eventually("the sound ones have ended") { try pair.phone.pendingMessages.isEmpty }
    for part in ["inbox", "claimed", "dead", "receipts"] {
      let left = try pair.files(part).filter { !$0.contains("forged") }
      #expect(left == ["folder", "garbage", "link", "pipe"], "\(part)")
    }
    // Whatever they are.
    for letter in "abcdefg" {
      #expect(try pair.meeting.container.peer("watch").discard(id: "forged\(letter)"), "\(letter)")
    }
    #expect(try pair.files("dead") == ["folder", "garbage", "link", "pipe"])
    receiving.stop()
  }

  /// The batch's file would never have been compared, and the file's name never checked.
  @Test(.blocking) func aBatchThatSaysItHasAFileIsGivenUp() throws {
    let pair = try Pair()
    try pair.send([1])
    let form = try pair.files("inbox")[0]
    let name = String(form.prefix(24)) + "02,forged," + form.split(separator: ",").last!
    let batch: PropertyListValue = [
      "kind": "Int", "sent": .date(.now), "to": "watch", "values": [2, 3],
      "file": ["name": "../../escaped", "size": 0, "checksum": 0],
    ]
    let bytes = try BinaryEncoder().encode(batch)
    try pair.meeting.folder.descriptor.open("made", [.writeOnly, .create], mode: 0o600)
      .write(bytes)
    try pair.meeting.folder.descriptor.rename(
      "made", to: pair.meeting.folder("members/watch/inbox"), name)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try eventually("it is given up") { try pair.files("dead").contains(name) }
    try heard.wait("the sound one") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(1)])
  }

  /// However often the dead-lettering is tried, one claimed file counts once.
  @Test(.blocking) func aDamagedFileThatCannotBeGivenUpIsCountedOnce() throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { options in
      options.mailbox.maximumDeadLetters = 0
      options.log = { told.add($0) }
    }
    try pair.send([1])
    let name = try pair.files("inbox")[0]
    try pair.meeting.overwrite("members/watch/inbox/\(name)", [1, 2, 3])
    let receiving = try pair.watch.receive { _ in }
    try told.wait("it cannot be given up") { $0.contains { $0.text.contains("dead letters") } }
    receiving.stop()
    #expect(pair.watch.mailbox.state.withLock { $0.machine.inHand } == 0)
  }

  /// The receiver died between the dead letter and the end of the claim.
  @Test(.blocking) func anExistingDeadLetterNeedsNoMoreRoom() throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { options in
      options.mailbox.maximumDeadLetters = 1
      options.mailbox.attempts = 1
      options.log = { told.add($0) }
    }
    let sent = try pair.send([1])[0]
    let receiving = try pair.watch.receive { _ in throw Refusal() }
    _ = try sent.waitForEnd()
    receiving.stop()
    pair.watch.leave()
    let letter = try #require(try pair.files("dead").first { !$0.hasSuffix(",reason") })
    let member = try pair.meeting.folder("members/watch")
    try member.open("dead", [.readOnly, .directory])
      .link(letter, to: member.open("claimed", [.readOnly, .directory]), letter + "~1")
    let heir = try pair.meeting.another {
      $0.mailbox.maximumDeadLetters = 1
      $0.mailbox.attempts = 1
      $0.log = { told.add($0) }
    }.join(as: "watch")
    let again = try heir.receive { _ in throw Refusal() }
    #expect(throws: Never.self) {
      try eventually("it is given up") { try pair.files("claimed").isEmpty }
    }
    again.stop()
    #expect(try pair.files("dead").contains(letter))
    #expect(!told.all.contains { $0.text.contains("dead letters") })
  }

  /// An earlier process has died after it placed the letter of one message of the batch, and before
  /// it recorded the progress.
  @Test(.blocking) func anExistingLetterOfABatchIsNotPlacedAgain() throws {
    let pair = try Pair {
      $0.mailbox.attempts = 1
      $0.mailbox.retryDelay = .milliseconds(1)
    }
    let sent = try pair.phone.send(contentsOf: [1, 2], .quick())[0]
    let letter = sent.name.part(0).text
    let member = try pair.meeting.folder("members/watch")
    try? member.makeDirectory("dead", mode: 0o700)
    try member.open("inbox", [.readOnly, .directory])
      .link(sent.name.text, to: member.open("dead", [.readOnly, .directory]), letter)
    let receiving = try pair.watch.receive { message in
      if try message.value(as: Int.self) == 1 { throw Refusal() }
    }
    #expect(throws: Never.self) { try sent.waitForEnd() }
    receiving.stop()
    #expect(sent.status.map { if case .deadLettered = $0 { true } else { false } } == true)
    #expect(try pair.files("dead").filter { !$0.hasSuffix(",reason") } == [letter])
    #expect(try pair.files("claimed") == [])
  }

  /// Receipts that are none are told to nobody, or as far as they can be read.
  @Test(.blocking) func foreignReceiptsAreHarmless() throws {
    let pair = try Pair()
    try pair.send([1])
    let form = try pair.files("inbox")[0]
    let receipts = try pair.meeting.folder("members/phone/receipts")
    try receipts.makeFIFO("pipe.ok", mode: 0o600)
    try receipts.makeFIFO(String(form.prefix(27)) + "forged,phone.ok", mode: 0o600)
    let heard = Heard<Outcome>()
    let watching = try pair.sender.watchOutcomes { heard.add($0) }
    let receiving = try pair.watch.receive { _ in }
    try heard.wait("both") { $0.count == 2 }
    #expect(heard.all.map(\.id).contains("forged"))
    receiving.stop()
    watching.stop()
  }

  /// A momentary refusal by the system does not dead-letter a message, and is not an attempt.
  @Test(.blocking) func aClaimThatIsRefusedIsTriedAgain() throws {
    let meeting = try Meeting()
    try meeting.folder.write("", to: "log")
    let sender = try meeting.container.join(as: "phone")
    for number in 1...2 { try sender.peer("watch").send(number, .quick()) }
    try sender.peer("watch").send(contentsOf: [3, 4], .quick())
    let faults = [
      "rename~watch/claimed@1:before:fail=EIO", "open~watch/claimed/1@2:before:fail=EMFILE",
      "rename~phone/receipts@2:before:fail=ENOSPC", "getdents~inbox@1:before:fail=ENOMEM",
    ]
    let receiver = try Running(
      .drain(meeting.path, "watch", count: 4),
      environment: ["WORMHOLE_FAULTS=" + faults.joined(separator: ";")])
    #expect(try receiver.outcome().status == .exited(0))
    #expect(try meeting.names("members/watch/dead") == [])
    #expect(try meeting.names("members/watch/inbox") == [])
  }

  /// The receiver that reads the claimed file at last makes the first attempt.
  @Test(.blocking) func aReadThatIsRefusedIsNoAttempt() throws {
    let meeting = try Meeting()
    try meeting.container.peer("watch").send(1, .quick())
    let refusals = (1...2).map { "open~watch/claimed/1@\($0):before:fail=EMFILE" }
    let receiver = try Running(
      .receive(meeting.path, "watch", log: meeting.folder.path + "/log", until: 1),
      environment: ["WORMHOLE_FAULTS=" + refusals.joined(separator: ";")])
    let outcome = try receiver.outcome()
    #expect(outcome.status == .exited(0))
    let failures = outcome.errors.split(separator: "\n").filter {
      $0.hasPrefix("cannot read message")
    }
    #expect(failures.count == 2, "\(outcome.errors)")
    #expect(try meeting.folder.read("log") == "1 1 false\n1 done\n")
  }

  /// The message is handled once, and its outcome is written when the system permits.
  @Test(arguments: [1, 3])
  func anAcknowledgementThatFailsIsWrittenDownLater(_ count: Int) async throws {
    let pair = try Pair()
    let sent = try await pair.phone.send(contentsOf: Array(1...count), .quick())[0]
    let heard = Heard<Handed>()
    // A file takes the place of the sender's receipts, so no receipt can be moved there.
    let phone = try pair.meeting.folder("members/phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
    let receiving = try pair.watch.note(heard)
    try await heard.comes("all") { $0.count == count }
    // In one step, because the receiver tries again and would make a missing folder.
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    #expect(heard.all == (1...count).map { Handed($0) })
    #expect(try pair.files("claimed") == [])
    receiving.stop()
  }

  /// A file loses its holder once, however often the outcome cannot be written.
  ///
  /// With a count below the number of claimed files, strict order would not be kept.
  @Test(.blocking) func aFileWhoseOutcomeIsRefusedTwiceIsCountedOnce() throws {
    let told = Heard<LogEntry>()
    let pair = try Pair { options in options.log = { told.add($0) } }
    let sent = try pair.send([1])[0]
    // As above.
    let phone = try pair.meeting.folder("members/phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    // The first refusal is an error, and each further one is not.
    try told.wait("the second refusal") { entries in
      entries.contains { $0.level == .info && $0.message == sent.id && $0.errno != nil }
    }
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
    #expect(try sent.waitForEnd() == .delivered)
    receiving.stop()
    #expect(heard.all == [Handed(1)])
    #expect(pair.watch.mailbox.state.withLock { $0.machine.inHand } == 0)
  }

  /// A handler that rethrows the error of its acknowledgement has handled the message.
  @Test(.blocking) func anAcknowledgementThatFailsIsNoFailedAttempt() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let sent = try pair.phone.send(contentsOf: [1, 2], .quick())[0]
    // As above.
    let phone = try pair.meeting.folder("members/phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
    let ends = Heard<WormholeError.Code?>()
    let receiving = try pair.watch.receive { message in
      do throws(WormholeError) {
        try message.acknowledge()
        ends.add(nil)
      } catch {
        ends.add(error.code)
        throw error
      }
    }
    try ends.wait("both") { $0.count == 2 }
    #expect(ends.all.first == .some(nil) && ends.all.last != .some(nil))
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
    #expect(try sent.waitForEnd() == .delivered)
    receiving.stop()
    #expect(ends.count == 2)
    #expect(try pair.files("dead") == [])
  }

  /// A call of `pendingMessages` may make a second object of a message that a program retains.
  @Test(.blocking) func eachObjectOfAMessageReceivesItsOutcome() throws {
    let pair = try Pair()
    let first = try pair.send([1])[0]
    let home = try #require(try pair.meeting.container.storage.existingMember("watch"))
    let outbox = pair.sender.outbox
    let second = Sent(first.identity, to: home, pair.meeting.container, outbox)
    try outbox.expect(second)
    let receiving = try pair.watch.receive { _ in }
    #expect(try first.waitForEnd() == .delivered)
    #expect(throws: Never.self) { try second.waitForEnd() }
    #expect(second.status == .delivered)
    receiving.stop()
  }

  /// Another tool removes the file of a claimed batch, in whose order every later message waits.
  @Test(.blocking) func aBatchThatWasRemovedHoldsUpNothing() throws {
    let pair = try Pair {
      $0.mailbox.keepsOrderOnRetry = true
      $0.mailbox.attempts = 1
    }
    try pair.phone.send(contentsOf: [1, 2], .quick())
    let message = try #require(try pair.watch.take(1).first)
    let file = try #require(try pair.files("claimed").first)
    try pair.meeting.folder("members/watch/claimed").unlink(file)
    #expect(try failure { try message.fail("no") }.code == .superseded)
    try pair.send([3])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("the next message") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(3)])
  }

  /// A message of the removed batch is acknowledged while the next batch is claimed.
  @Test(.blocking) func anOutcomeOfARemovedBatchIsNoneOfTheNextBatch() throws {
    let pair = try Pair()
    try pair.phone.send(contentsOf: [1, 2], .quick())
    let lost = try pair.watch.take(2)
    let file = try #require(try pair.files("claimed").first)
    try pair.meeting.folder("members/watch/claimed").unlink(file)
    // The next receiver finds that the file is gone.
    lost[0].requeue()
    try pair.phone.send(contentsOf: [3, 4], .quick())
    let claimed = try pair.watch.take(2)
    try lost[1].acknowledge()
    pair.watch.leave()
    let heard = Heard<Handed>()
    let receiving = try pair.meeting.another().join(as: "watch").note(heard)
    try pair.send([5])
    try heard.wait("the last") { $0.last?.number == 5 }
    receiving.stop()
    #expect(heard.all == [Handed(3, 2), Handed(4, 2), Handed(5)])
    withExtendedLifetime((lost, claimed)) {}
  }
}
