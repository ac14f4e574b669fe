import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Listings of queues with foreign, expired and vanishing files, and on a disk that refuses.
@Suite(.blocking) struct ListedQueueTests {
  private let meeting: Meeting
  private let clock: Monitor<Int64>
  private let entries: Heard<LogEntry>
  private let peer: Peer

  init() throws {
    let (clock, entries) = (Monitor(Clocks.sinceEpoch), Heard<LogEntry>())
    meeting = try Meeting {
      $0.environment.sinceEpoch = { clock.withLock { $0 } }
      $0.log = { entries.add($0) }
    }
    (self.clock, self.entries) = (clock, entries)
    peer = meeting.container.peer("watch")
  }

  private static let expiring = SendOptions.quick { $0.timeToLive = .seconds(60) }

  private func pass() { clock.withLock { $0 += 7_200_000_000_000 } }

  private func waiting() throws -> [String] { try meeting.names("members/watch/inbox") }

  private func home() throws -> MemberDirectory {
    try #require(try meeting.container.storage.existingMember("watch"))
  }

  // MARK: Foreign files

  @Test func aLinkIsListedAndNotFollowed() throws {
    try meeting.container.peer("watch", from: "phone").send("sound", .quick())
    let form = try #require(try waiting().first)
    let name = String(form.prefix(27)) + "forged," + form.split(separator: ",").last!
    // A link that was followed would have another size, and a readable content.
    let target = "../inbox/\(form)"
    try meeting.folder("members/watch/inbox").makeSymbolicLink(name, to: target)
    let queue = try peer.queue
    #expect(queue.count == 2)
    #expect(queue.filter { $0.damage == nil }.map(\.kind) == ["String"])
    let forged = try #require(queue.first { $0.id == "forged" })
    #expect(forged.damage == "its inbox/\(name) is a symbolic link, not a plain file")
    #expect(forged.size == target.utf8.count)
    #expect(forged.kind == nil && forged.sentAt == nil)
    #expect(forged.state == .waiting)
  }

  /// A name in the inbox may end as the name of a message that was claimed in vain.
  @Test func aMessageInTheInboxIsListedWhateverItsNameIs() throws {
    let queue = meeting.container.queue("jobs", of: Int.self)
    try queue.send(1, .quick { $0.orderingKey = "seat" })
    let name = try #require(try meeting.names("queues/jobs/inbox").first { $0 != "room" })
    let inbox = try meeting.folder("queues/jobs/inbox")
    try inbox.rename(name, to: inbox, name + "~0.1")
    #expect(try queue.messages.map(\.state) == [.waiting])
    #expect(try queue.messages.map(\.kind) == ["Int"])
  }

  /// The attempt 0 belongs to the claims of the queue alone.
  @Test func aMessageOfAWorkerIsListedWhateverItsNameIs() throws {
    let queue = meeting.container.queue("jobs", of: Int.self)
    try queue.send(1, .quick { $0.orderingKey = "seat" })
    let names = try meeting.names("queues/jobs/inbox").compactMap { MessageName($0) }
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    let (worker, presence) = try home.makeWorker(deadline: nil)
    defer { presence.release() }
    let claimed = ClaimedName(names[0], attempt: 0, claim: 1)
    #expect(try home.move(names[0].text, from: .inbox, to: worker, .claimed, as: claimed.text))
    #expect(try queue.messages.map(\.state) == [.claimed])
  }

  /// The message is removed between the listing of the names and the read of its file.
  @Test func aDelayedMessageThatVanishesIsLeftOutAlone() throws {
    try peer.send(
      1,
      .quick {
        $0.delay = .seconds(3600)
        $0.id = "one"
      })
    try peer.send(
      2,
      .quick {
        $0.delay = .seconds(7200)
        $0.id = "two"
      })
    let first = try #require(try meeting.names("members/watch/later").first { $0.contains("one") })
    let (pause, listed) = (FaultPause(), Heard<[String]>())
    let reader = try Thread("listing") { [peer] in
      FaultPoints.with([FaultRule(.open, path: first, .pause(pause))]) {
        listed.add((try? peer.queue.map(\.id)) ?? ["an error"])
      }
    }
    try eventually("it is about to read") { pause.isReached }
    try meeting.folder("members/watch/later").unlink(first)
    pause.open()
    reader.join()
    #expect(listed.all == [["two"]])
  }

  /// The message is claimed between the listing of the names and the read of its file.
  @Test func aMessageThatIsClaimedMeanwhileIsListed() throws {
    let id = try peer.send(1, .quick()).id
    let home = try home()
    let name = try #require(try waiting().compactMap { MessageName($0) }.first)
    let (pause, listed) = (FaultPause(), Heard<[QueuedMessage]>())
    let reader = try Thread("listing") { [peer] in
      FaultPoints.with([FaultRule(.open, path: name.text, .pause(pause))]) {
        listed.add((try? peer.queue) ?? [])
      }
    }
    try eventually("it is about to read") { pause.isReached }
    #expect(try home.claim(ClaimedName(name, attempt: 1)))
    pause.open()
    reader.join()
    #expect(listed.all.map { $0.map(\.id) } == [[id]])
    #expect(listed.all.map { $0.map(\.attempt) } == [[1]])
  }

  /// The second message was claimed before the listing, and the first one is claimed during it.
  @Test func messagesThatAreClaimedMeanwhileAreListedInOrder() throws {
    let ids = try (1...2).map { try peer.send($0, .quick()).id }
    let home = try home()
    let names = try waiting().compactMap { MessageName($0) }.sorted()
    try #require(names.map(\.id) == ids)
    #expect(try home.claim(ClaimedName(names[1], attempt: 1)))
    let (pause, listed) = (FaultPause(), Heard<[QueuedMessage]>())
    let reader = try Thread("listing") { [peer] in
      FaultPoints.with([FaultRule(.open, path: names[0].text, .pause(pause))]) {
        listed.add((try? peer.queue) ?? [])
      }
    }
    try eventually("it is about to read") { pause.isReached }
    #expect(try home.claim(ClaimedName(names[0], attempt: 1)))
    pause.open()
    reader.join()
    #expect(listed.all.map { $0.map(\.id) } == [ids])
    #expect(listed.all.map { $0.map(\.state) } == [[.interrupted, .interrupted]])
  }

  /// The claim gets its next name between the listing of the names and the read of its file.
  @Test func aMessageThatStartsItsNextAttemptIsListed() throws {
    let id = try peer.send(1, .quick()).id
    let home = try home()
    let name = try #require(try waiting().compactMap { MessageName($0) }.first)
    let (one, two) = (ClaimedName(name, attempt: 1), ClaimedName(name, attempt: 2))
    #expect(try home.claim(one))
    let (pause, listed) = (FaultPause(), Heard<[QueuedMessage]>())
    let reader = try Thread("listing") { [peer] in
      FaultPoints.with([FaultRule(.open, path: one.text, .pause(pause))]) {
        listed.add((try? peer.queue) ?? [])
      }
    }
    try eventually("it is about to read") { pause.isReached }
    #expect(try home.move(one.text, from: .claimed, .claimed, as: two.text))
    pause.open()
    reader.join()
    #expect(listed.all.map { $0.map(\.id) } == [[id]])
    #expect(listed.all.map { $0.map(\.attempt) } == [[2]])
  }

  // MARK: Expired messages

  @Test func anExpiredMessageDoesNotCount() throws {
    try peer.send(1, Self.expiring)
    #expect(try peer.hasQueuedMessage(except: nil))
    pass()
    let clock = clock
    let reader = try meeting.another {
      $0.environment.sinceEpoch = { clock.withLock { $0 } }
      $0.isForReading = true
    }
    #expect(try !reader.peer("watch").hasQueuedMessage(except: nil))
    #expect(try waiting().count == 1, "who only reads removes nothing")
    #expect(try !peer.hasQueuedMessage(except: nil))
    #expect(try waiting() == [])
  }

  @Test func aSweepThatCannotListSaysSoAndIsMadeAgain() throws {
    try peer.send(1, Self.expiring)
    pass()
    let (home, container) = (try home(), meeting.container)
    FaultPoints.with([FaultRule(.getdents, path: "watch/inbox", .fail(.inputOutput))]) {
      #expect(Expiry.sweep(home, container) == 0)
    }
    let entry = try #require(entries.all.first)
    #expect(entry.level == .notice)
    #expect(entry.text.hasPrefix("cannot list expired messages of 'watch': "))
    #expect(entry.member == "watch")
    #expect(entry.errno == Errno.inputOutput.rawValue)
    #expect(try waiting().count == 1)
    #expect(Expiry.sweep(home, container) == 1)
    #expect(try waiting() == [])
  }

  /// A message that cannot be removed does not keep the sweep from the other messages.
  @Test func aSweepGoesOnAfterAMessageThatItCannotSettle() throws {
    let sent = try (1...3).map { try peer.send($0, Self.expiring) }
    pass()
    let (home, container) = (try home(), meeting.container)
    FaultPoints.with([FaultRule(.unlink, path: "watch/inbox/", .fail(.inputOutput))]) {
      #expect(Expiry.sweep(home, container) == 2)
    }
    let entry = try #require(entries.all.first)
    #expect(entries.count == 1)
    #expect(entry.level == .notice && entry.code == .system)
    #expect(entry.message == sent[0].id && entry.member == "watch")
    #expect(try waiting().count == 1)
    #expect(Expiry.sweep(home, container) == 1)
  }

  /// A file that is larger than all that one sweep reads is not the last of the sweep.
  @Test func aSweepGoesOnAfterAFileThatIsTooLarge() throws {
    let sent = try (1...2).map { try peer.send($0, Self.expiring) }
    pass()
    let large = "\(meeting.path)/members/watch/inbox/\(sent[0].name.text)"
    try Descriptor.open(path: large, [.writeOnly]).truncate(to: 65 << 20)
    let (home, container) = (try home(), meeting.container)
    #expect(Expiry.sweep(home, container) == 1)
    #expect(try waiting() == [sent[0].name.text])
  }

  /// Without the sender's directory there would be no receipt, and the sender would wait for ever.
  @Test func aMessageWhoseSenderCannotBeLookedUpIsSettledLater() throws {
    let clock = clock
    let phone = try meeting.another {
      $0.environment.sinceEpoch = { clock.withLock { $0 } }
    }.join(as: "phone")
    let sent = try phone.peer("watch").send(1, Self.expiring)
    phone.leave()
    pass()
    let (home, container) = (try home(), meeting.container)
    let rule = FaultRule(
      .open, path: "members/phone", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { #expect(Expiry.sweep(home, container) == 0) }
    let entry = try #require(entries.all.first { $0.message == sent.id })
    #expect(entry.code == .exhausted)
    #expect(entry.errno == Errno.tooManyOpenFiles.rawValue)
    #expect(try waiting().count == 1)
    #expect(try container.peer("phone").pendingOutcomes.isEmpty)
    #expect(Expiry.sweep(home, container) == 1)
    #expect(try container.peer("phone").pendingOutcomes.map(\.status) == [.expired])
  }

  // MARK: Due messages

  @Test func aDueMessageThatCannotBeMovedIsStillListed() throws {
    let sent = try peer.send(1, .quick { $0.delay = .seconds(3600) })
    pass()
    try FaultPoints.with([FaultRule(.rename, path: "watch/inbox/", .fail(.noSpace))]) {
      let queue = try peer.queue
      #expect(queue.map(\.id) == [sent.id])
      #expect(queue.map(\.state) == [.delayed])
    }
    let entry = try #require(entries.all.first)
    #expect(entry.level == .notice)
    #expect(entry.text.hasPrefix("cannot deliver the delayed messages of 'watch': "))
    #expect(entry.member == "watch")
    #expect(try waiting() == [])
    #expect(try peer.queue.map(\.state) == [.waiting])
    #expect(try waiting().count == 1)
    #expect(entries.count == 1)
  }

  // MARK: Dead letters

  /// The reason is removed after the message, and a reason without a message is harmless.
  @Test func aRetryThatTheDiskRefusesKeepsTheLetterAndItsReason() throws {
    let watch = try meeting.another { $0.mailbox.attempts = 1 }.join(as: "watch")
    let sent = try peer.send(1, .quick())
    let receiving = try watch.receive { _ in throw Refusal() }
    try eventually("it is dead") { try !peer.deadLetters.isEmpty }
    receiving.stop()
    try FaultPoints.with([FaultRule(.rename, path: "watch/inbox/", .fail(.inputOutput))]) {
      let error = try failure { _ = try peer.retry(id: sent.id) }
      #expect(error.code == .system && error.operation == "retry message")
    }
    try FaultPoints.with([FaultRule(.unlink, path: "watch/dead/", .fail(.inputOutput))]) {
      let error = try failure { _ = try peer.discard(id: sent.id) }
      #expect(error.code == .system && error.operation == "discard message")
    }
    #expect(try peer.deadLetters.map(\.reason) == ["\(Refusal())"])
    #expect(try waiting() == [])
    #expect(try peer.retry(id: sent.id))
    #expect(try peer.deadLetters.isEmpty)
    #expect(try waiting().count == 1)
  }

  /// The message is out of the dead letters: its reason belongs to no message, and is harmless.
  @Test func aRetryIsNoFailureWhoseReasonStays() throws {
    let watch = try meeting.another { $0.mailbox.attempts = 1 }.join(as: "watch")
    let sent = try peer.send(1, .quick())
    let receiving = try watch.receive { _ in throw Refusal() }
    try eventually("it is dead") { try !peer.deadLetters.isEmpty }
    receiving.stop()
    var isRetried = false
    let rule = FaultRule(.unlink, path: ",reason", .fail(.inputOutput))
    try FaultPoints.with([rule]) { isRetried = try peer.retry(id: sent.id) }
    #expect(isRetried)
    #expect(try peer.deadLetters.isEmpty)
    #expect(try waiting().count == 1)
  }
}
