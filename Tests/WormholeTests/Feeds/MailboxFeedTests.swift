import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The steps of messages, as they are reported by the names of their files.
@Suite(.blocking) struct MailboxFeedTests {
  private let events = Heard<String>()

  private func watch(
    _ name: String, _ folder: Container.Folder, of container: SharedContainer, isNew: Bool = false
  ) throws -> MailboxFeed? {
    let events = events
    return try MailboxFeed(name, folder, in: container, isNew: isNew) { event in
      let words = [event.step.rawValue, event.id, event.sender ?? "-", "\(event.attempt)"]
      events.add(words.filter { !$0.isEmpty }.joined(separator: " "))
    }
  }

  private func waitFor(_ line: String) throws {
    try events.wait(line) { $0.contains(line) }
  }

  @Test func eachStepOfAMembersMessageIsReported() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    try pair.phone.send(0, .quick { $0.id = "before" })
    let feed = try #require(try watch("watch", .members, of: pair.meeting.container))
    try pair.phone.send(1, .quick { $0.id = "one" })
    try waitFor("waiting one phone 0")
    #expect(events.all == ["waiting one phone 0"])
    let taken = try pair.watch.take(2)
    #expect(taken.map(\.id) == ["before", "one"])
    try waitFor("claimed before phone 1")
    try waitFor("claimed one phone 1")
    try taken[1].acknowledge()
    try waitFor("acknowledged one phone 1")
    taken[0].requeue()
    let receiving = try pair.watch.receive { _ in throw Missing() }
    try waitFor("dead before phone 0")
    receiving.stop()
    try pair.phone.send(
      2,
      .quick {
        $0.id = "later"
        $0.delay = .seconds(3600)
      })
    try waitFor("delayed later phone 0")
    try pair.phone.setContext(3)
    try waitFor("context phone 0")
    feed.stop()
    #expect(!events.all.contains("acknowledged before phone 1"))
    #expect(!events.all.contains("requeued one phone 1"))
  }

  @Test func whatWaitsInANewMailboxIsReportedInOrderAndOnce() throws {
    let pair = try Pair()
    try pair.phone.send(1, .quick { $0.id = "one" })
    try pair.phone.send(2, .quick { $0.id = "two" })
    try pair.phone.setContext(3)
    let feed = try #require(try watch("watch", .members, of: pair.meeting.container, isNew: true))
    #expect(
      events.all.prefix(3) == ["waiting one phone 0", "waiting two phone 0", "context phone 0"])
    try pair.phone.send(3, .quick { $0.id = "three" })
    try waitFor("waiting three phone 0")
    feed.stop()
    #expect(events.count == 4)
  }

  @Test func aMailboxThatNobodyHasMadeHasNoFeed() throws {
    let meeting = try Meeting()
    #expect(try watch("nobody", .members, of: meeting.container, isNew: true) == nil)
    #expect(try watch("nobody", .queues, of: meeting.container, isNew: true) == nil)
    #expect(try meeting.names("members") == [])
  }

  @Test func aQueuesWorkersAndTheirClaimsAreReported() throws {
    let meeting = try Meeting()
    let jobs = meeting.container.queue("jobs", of: Int.self)
    _ = try meeting.container.storage.member("jobs", in: .queues)
    let feed = try #require(try watch("jobs", .queues, of: meeting.container))
    let lent = try LentQueue("jobs", meeting.container) {}
    try waitFor("workerJoined - 0")
    try jobs.send(1, .quick { $0.id = "one" })
    try waitFor("waiting one - 0")
    lent.setRoom(1)
    let first = try eventually("the first is claimed") { lent.fresh.first }
    lent.bound([first.id])
    try waitFor("claimed one - 1")
    #expect(try lent.end(first.id, .acknowledged))
    try waitFor("acknowledged one - 1")
    try jobs.send(2, .quick { $0.id = "two" })
    let second = try eventually("the second is claimed") { lent.fresh.first }
    lent.bound([second.id])
    try waitFor("claimed two - 1")
    // No other claim follows.
    lent.setRoom(0)
    #expect(try lent.end(second.id, .undone))
    try waitFor("requeued two - 1")
    lent.stop()
    try waitFor("workerLeft - 0")
    feed.stop()
    #expect(!events.all.contains("acknowledged two - 1"))
    #expect(events.all.filter { $0.hasPrefix("worker") } == ["workerJoined - 0", "workerLeft - 0"])
    #expect(try jobs.messages.count == 1)
  }

  @Test func theEndOfAWorkerThatJoinedDuringTheStartIsReported() throws {
    let meeting = try Meeting()
    let other = try meeting.another()
    _ = try other.storage.member("jobs", in: .queues)
    let (pause, made) = (FaultPause(), Monitor<MailboxFeed?>(nil))
    let rule = FaultRule(.inotifyAdd, path: "jobs/workers", .pause(pause))
    let events = events
    let thread = try Thread("start") {
      _ = try? FaultPoints.with([rule]) {
        let feed = try MailboxFeed("jobs", .queues, in: meeting.container, isNew: false) {
          events.add($0.step.rawValue)
        }
        made.withLock { $0 = feed }
      }
    }
    defer { made.withLock { $0 }?.stop() }
    let lent: LentQueue
    do {
      defer {
        pause.open()
        thread.join()
      }
      try eventually("the feed watches the workers") { pause.isReached }
      lent = try LentQueue("jobs", other) {}
    }
    lent.stop()
    try events.wait("the end") { $0.contains("workerLeft") }
  }

  @Test func theWorkersOfANewQueueAreReported() throws {
    let meeting = try Meeting()
    _ = try meeting.container.storage.member("jobs", in: .queues)
    let lent = try LentQueue("jobs", meeting.container) {}
    let feed = try #require(try watch("jobs", .queues, of: meeting.container, isNew: true))
    #expect(events.all == ["workerJoined - 0"])
    lent.stop()
    try waitFor("workerLeft - 0")
    feed.stop()
    #expect(events.count == 2)
  }

  /// A refused call says nothing about a worker, which is looked for again.
  @Test func aWorkerThatCannotBeOpenedIsReportedLater() throws {
    let meeting = try Meeting()
    _ = try meeting.container.storage.member("jobs", in: .queues)
    let lent = try LentQueue("jobs", meeting.container) {}
    let name = try #require(try meeting.names("queues/jobs/workers").first)
    let rule = FaultRule(.open, path: "jobs/workers/\(name)", .fail(.tooManyOpenFiles))
    var feed: MailboxFeed?
    try FaultPoints.with([rule]) {
      feed = try watch("jobs", .queues, of: meeting.container, isNew: true)
    }
    defer { feed?.stop() }
    try waitFor("workerJoined - 0")
    lent.stop()
    try waitFor("workerLeft - 0")
    #expect(events.count == 2)
  }

  @Test func aWorkerWhoseDirectoryIsReplacedHasLeft() throws {
    let meeting = try Meeting()
    _ = try meeting.container.storage.member("jobs", in: .queues)
    let lent = try LentQueue("jobs", meeting.container) {}
    defer { lent.stop() }
    let feed = try #require(try watch("jobs", .queues, of: meeting.container, isNew: true))
    defer { feed.stop() }
    try waitFor("workerJoined - 0")
    let queue = try Descriptor.open(
      path: "\(meeting.container.directory)/queues/jobs", [.readOnly, .directory])
    try queue.rename("workers", to: queue, "moved")
    try queue.makeDirectory("workers", mode: 0o700)
    try waitFor("workerLeft - 0")
  }

  /// A failed job waits among the claims of the queue for its next attempt.
  @Test func aJobThatFailedIsRequeuedAndNotAcknowledged() throws {
    let meeting = try Meeting()
    let jobs = meeting.container.queue("jobs", of: Int.self)
    _ = try meeting.container.storage.member("jobs", in: .queues)
    let feed = try #require(try watch("jobs", .queues, of: meeting.container))
    let lent = try LentQueue("jobs", meeting.container) {}
    try waitFor("workerJoined - 0")
    try jobs.send(1, .quick { $0.id = "one" })
    lent.setRoom(1)
    let first = try eventually("it is claimed") { lent.fresh.first }
    lent.bound([first.id])
    try waitFor("claimed one - 1")
    lent.setRoom(0)
    #expect(try lent.end(first.id, .failed))
    try waitFor("requeued one - 1")
    lent.stop()
    feed.stop()
    #expect(!events.all.contains { $0.hasPrefix("acknowledged") })
    #expect(try jobs.messages.count == 1)
  }

  /// A worker may end an attempt and begin the next one before the names are read.
  @Test func aClaimOfTheNextAttemptIsReported() throws {
    let meeting = try Meeting()
    let queue = try meeting.container.storage.member("jobs", in: .queues)
    let (worker, presence) = try queue.makeWorker(deadline: nil)
    let events = events
    let gate = Monitor(false)
    let feed = try #require(
      try MailboxFeed("jobs", .queues, in: meeting.container, isNew: false) { event in
        events.add("\(event.step.rawValue) \(event.attempt)")
        // The names that change meanwhile are reported together.
        _ = gate.wait(until: .now + .seconds(60)) { $0 ? true : nil }
      })
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "one", from: "")
    let first = ClaimedName(name, attempt: 1, claim: 1)
    let second = ClaimedName(name, attempt: 2, claim: 2)
    try worker.place([1], as: first.text, in: .claimed, durability: .process)
    try waitFor("claimed 1")
    let place = [meeting.path, "queues/jobs/workers", worker.escaped, "claimed"]
    let claims = try Descriptor.open(
      path: place.joined(separator: "/"), [.readOnly, .directory])
    try claims.rename(first.text, to: claims, second.text)
    gate.signal { $0 = true }
    try waitFor("claimed 2")
    feed.stop()
    #expect(events.all == ["claimed 1", "claimed 2"])
    withExtendedLifetime(presence) {}
  }

  /// A worker takes the message after its own claims were listed, and before those of the queue.
  @Test func aMessageThatMovesToAWorkerDuringTheListingIsClaimed() throws {
    let meeting = try Meeting()
    let queue = try meeting.container.storage.member("jobs", in: .queues)
    let (worker, presence) = try queue.makeWorker(deadline: nil)
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "one", from: "")
    let claim = ClaimedName(name, attempt: 1, claim: 1).text
    try queue.place([1], as: claim, in: .claimed, durability: .process)
    _ = try worker.part(.claimed)
    let feed = try #require(try watch("jobs", .queues, of: meeting.container))
    defer { feed.stop() }
    let (pause, found) = (FaultPause(), Heard<Set<MessageName>>())
    let rule = FaultRule(.getdents, path: "queues/jobs/claimed", .pause(pause))
    let listing = try Thread("listing") {
      FaultPoints.with([rule]) { found.add(feed.messagesInHand()) }
    }
    do {
      defer {
        pause.open()
        listing.join()
      }
      try eventually("the claims of the queue are about to be listed") { pause.isReached }
      try meeting.folder("queues/jobs/claimed").rename(
        claim, to: meeting.folder("queues/jobs/workers/\(worker.escaped)/claimed"), claim)
    }
    #expect(found.all == [[name]])
    withExtendedLifetime(presence) {}
  }

  /// A member's next attempt renames the claim.
  @Test func aMembersNextAttemptIsReported() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    let events = events
    let gate = Monitor(false)
    let feed = try #require(
      try MailboxFeed("watch", .members, in: meeting.container, isNew: false) { event in
        events.add("\(event.step.rawValue) \(event.attempt)")
        // The names that change meanwhile are reported together.
        _ = gate.wait(until: .now + patience) { $0 ? true : nil }
      })
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "one", from: "")
    let texts = (1...2).map { ClaimedName(name, attempt: $0).text }
    try home.place([1], as: texts[0], in: .claimed)
    try waitFor("claimed 1")
    let claims = try meeting.folder("members/watch/claimed")
    try claims.rename(texts[0], to: claims, texts[1])
    gate.signal { $0 = true }
    try waitFor("claimed 2")
    feed.stop()
    #expect(events.all == ["claimed 1", "claimed 2"])
  }

  /// The other mailboxes lose nothing, so no other watch reports the loss.
  @Test func aSlowHandlerIsToldThatStepsAreMissing() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    let events = events
    let gate = Monitor(false)
    let feed = try #require(
      try MailboxFeed("watch", .members, in: meeting.container, isNew: false) { event in
        events.add(event.step.rawValue)
        _ = gate.wait(until: .now + patience) { $0 ? true : nil }
      })
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "one", from: "")
    try home.place([1], as: name.text, in: .inbox)
    try waitFor("waiting")
    let inbox = try meeting.folder("members/watch/inbox")
    // Twice as many names as are kept: the kernel, too, keeps no more for the watcher's thread.
    for _ in 0...WatchSignal.most {
      try inbox.rename(name.text, to: inbox, "other")
      try inbox.rename("other", to: inbox, name.text)
    }
    gate.signal { $0 = true }
    try waitFor("lost")
    feed.stop()
  }

  @Test func whatWaitsInAReplacedInboxIsReported() throws {
    let meeting = try Meeting()
    try meeting.container.queue("jobs", of: Int.self).send(1, .quick { $0.id = "one" })
    let feed = try #require(try watch("jobs", .queues, of: meeting.container, isNew: true))
    try waitFor("waiting one - 0")
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "two", from: "")
    let jobs = try meeting.folder("queues/jobs")
    try jobs.makeDirectory("fresh", mode: 0o700)
    try meeting.folder.write("", to: "c/queues/jobs/fresh/\(name.text)")
    try jobs.rename("inbox", to: jobs, "moved")
    try jobs.rename("fresh", to: jobs, "inbox")
    try waitFor("waiting two - 0")
    feed.stop()
    #expect(events.all == ["waiting one - 0", "waiting two - 0"])
  }

  /// The worker was there before the feed, whose first look at the worker was refused.
  @Test func aWorkerThatIsOpenedLaterHasNotJoined() throws {
    let meeting = try Meeting()
    let queue = try meeting.container.storage.member("jobs", in: .queues)
    let (worker, presence) = try queue.makeWorker(deadline: nil)
    let path = "jobs/workers/\(worker.escaped)"
    let rule = FaultRule(.open, path: path, .fail(.tooManyOpenFiles))
    var feed: MailboxFeed?
    try FaultPoints.with([rule]) {
      feed = try watch("jobs", .queues, of: meeting.container)
    }
    defer { feed?.stop() }
    var number = 0
    try eventually("the worker's claims are reported") { () -> Bool in
      number += 1
      let name = MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Int64(number)), wantsReceipt: false,
        count: 1, id: "one", from: "")
      try worker.place([1], as: ClaimedName(name, attempt: 1, claim: 1).text, in: .claimed)
      return events.all.contains("claimed one - 1")
    }
    #expect(!events.all.contains { $0.hasPrefix("worker") })
    withExtendedLifetime(presence) {}
  }
}
