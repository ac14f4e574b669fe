import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Receivers and workers that begin, or try again, while another thread ends them, and workers that
/// look after others which cannot be read.
@Suite(.blocking) struct WatchedEndTests {
  private let meeting: Meeting

  init() throws { meeting = try Meeting() }

  /// The watch on the inbox would go on until the end of the process.
  @Test func aReceiverThatBeginsWhileItsMemberLeavesIsRefused() throws {
    let watch = try meeting.container.join(as: "watch")
    let (mailbox, pause) = (watch.mailbox, FaultPause())
    let codes = Heard<WormholeError.Code?>()
    let rule = FaultRule(.open, path: MemberDirectory.progressName, .pause(pause))
    let late = try Thread("late") {
      FaultPoints.with([rule]) {
        do throws(WormholeError) {
          _ = try mailbox.add(Worker(on: WorkQueue()), kinds: nil)
          codes.add(nil)
        } catch {
          codes.add(error.code)
        }
      }
    }
    try TestSupport.eventually("it is about to watch the inbox") { pause.isReached }
    watch.leave()
    pause.open()
    late.join()
    #expect(codes.all == [.notJoined])
    #expect(!mailbox.inbox.pause(), "nothing is watched that could pause")
  }

  /// The worker tries once a second to follow, and a program that ends waits for no such second.
  @Test func aWorkerThatCannotFollowItsQueueEndsAtOnce() throws {
    let (clock, words, ended) = (TestClock(), Heard<String>(), Heard<Bool>())
    let container = try meeting.another {
      $0.clock = clock
      $0.log = { words.add($0.text) }
    }
    let working = try container.queue("jobs", of: Int.self).work { _, _ in }
    try meeting.folder("queues/jobs").open("away", [.writeOnly, .create], mode: 0o600)
      .write(Array("no directory".utf8))
    // Refused until the worker has left the former place.
    try? Carrier(meeting.container).leave("jobs", to: "0123456789abcdef", term: 1)
    try words.wait("it cannot follow") { $0.contains { $0.contains("work on queue") } }
    working.stop()
    Task.detached { ended.add((try? await working.finished()) != nil) }
    try ended.wait("its task has ended") { $0 == [true] }
  }

  @Test func aWorkerThatCannotBeReadHoldsUpNoOther() throws {
    let queue = meeting.container.queue("jobs", of: Int.self)
    try queue.send(contentsOf: [1, 2], .quick())
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    for name in try meeting.names("queues/jobs/inbox").compactMap({ MessageName($0) }) {
      let (worker, presence) = try home.makeWorker(deadline: nil)
      let claimed = ClaimedName(name, attempt: 1, claim: 1)
      #expect(try home.move(name.text, from: .inbox, to: worker, .claimed, as: claimed.text))
      presence.release()
    }
    let patrol = QueuePatrol(home, "", meeting.container)
    let rule = FaultRule(.open, path: "/claimed", .fail(.inputOutput))
    try FaultPoints.with([rule]) { try patrol.begin() }
    #expect(try !meeting.names("queues/jobs/claimed").isEmpty)
    patrol.stop()
    try QueuePatrol(home, "", meeting.container).returnEnded()
    #expect(try meeting.names("queues/jobs/claimed").count == 2)
    #expect(try meeting.names("queues/jobs/workers") == [])
  }

  @Test func aClaimThatCannotBeReturnedHoldsUpNoOther() throws {
    let queue = meeting.container.queue("jobs", of: Int.self)
    try queue.send(contentsOf: [1, 2, 3], .quick())
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    let (worker, presence) = try home.makeWorker(deadline: nil)
    for name in try meeting.names("queues/jobs/inbox").compactMap({ MessageName($0) }) {
      let claimed = ClaimedName(name, attempt: 1, claim: 1)
      #expect(try home.move(name.text, from: .inbox, to: worker, .claimed, as: claimed.text))
    }
    presence.release()
    let rule = FaultRule(.rename, path: "~1", .fail(.inputOutput))
    FaultPoints.with([rule]) { try? QueuePatrol(home, "", meeting.container).returnEnded() }
    #expect(try meeting.names("queues/jobs/claimed").count == 2)
    try QueuePatrol(home, "", meeting.container).returnEnded()
    #expect(try meeting.names("queues/jobs/claimed").count == 3)
    #expect(try meeting.names("queues/jobs/workers") == [])
  }

  /// In the end the file of the batch is removed, with the only other copy of the message.
  @Test func aLetterOfABatchIsOnTheDiskBeforeItsMessageIsDone() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    try pair.phone.send(contentsOf: [1, 2], .quick())
    let messages = try pair.watch.take(2)
    let rule = FaultRule(.fsync, persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { try messages[0].fail("no paper") }
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try pair.phone.deadLetters.isEmpty)
    try messages[1].acknowledge()
  }

  // MARK: Contexts

  /// An equal context is not set again, and still has to survive what the caller asks for.
  @Test func anEqualContextIsDurableTooOnceTheCallHasReturned() throws {
    let pair = try Pair()
    func set(_ durability: Durability) throws -> Bool {
      try pair.phone.setContext(1, durability: durability)
    }
    let rule = FaultRule(.fsync, path: "watch/context", persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      for _ in 1...2 {
        let error = try failure { _ = try set(.power) }
        #expect(error.code == .notDurable)
      }
      let isSet = try set(.process)
      #expect(!isSet)
    }
    var isSetAgain = true
    let calls = try FaultPoints.with { isSetAgain = try set(.power) }
    #expect(!isSetAgain)
    let synced = calls.filter { $0.hasPrefix("fsync ") }
    #expect(synced.contains { $0.hasSuffix("watch/context/phone,next") })
    #expect(synced.contains { $0.hasSuffix("watch/context") })
  }

  /// The worker has moved, and cannot begin where its queue is now.
  @Test func aCallerOfAWorkerThatCannotFollowItsQueueWaitsUntilTheDeadline() throws {
    let callers = try meeting.container.queue("jobs", of: Int.self)
      .callers(handlingDeadline: nil)
    try meeting.folder("queues/jobs").open("away", [.writeOnly, .create], mode: 0o600)
      .write(Array("no directory".utf8))
    // Refused until the worker has left the former place.
    try? Carrier(meeting.container).leave("jobs", to: "0123456789abcdef", term: 1)
    try TestSupport.eventually("the worker has left") {
      try meeting.names("queues/jobs/workers") == []
    }
    let deadline = Instant.now + .milliseconds(100)
    #expect(callers.next(until: deadline) == nil)
    #expect(Instant.now >= deadline)
    callers.stop()
  }
}
