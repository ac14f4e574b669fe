import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A worker of a queue, and a receiver, to whom the system refuses a call for a moment.
@Suite(.blocking) struct WorkerFaultTests {
  private let meeting: Meeting
  private let queue: Wormhole.Queue<Int>

  init() throws {
    meeting = try Meeting()
    queue = meeting.container.queue("jobs")
    try meeting.folder.write("", to: "log")
    try meeting.folder.write("content", to: "file")
  }

  private func environment(_ faults: [String]) -> [String] {
    ["WORMHOLE_FAULTS=" + faults.joined(separator: ";")]
  }

  private func work(_ times: Int, _ faults: [String]) throws -> Running {
    try Running(
      .work(
        meeting.path, "jobs", log: meeting.folder.path + "/log", concurrency: 1, deadline: 60_000,
        times: times),
      environment: environment(faults))
  }

  private func log() throws -> [String] {
    try meeting.folder.read("log").split(separator: "\n").map(String.init)
  }

  private func attached() throws -> Int {
    try meeting.names("queues/jobs/files").filter { $0 != "room" }.count
  }

  /// The worker has left, and no message is left in anybody's hand.
  private func expectNothingLeft() throws {
    #expect(try queue.messages.isEmpty)
    #expect(try queue.deadLetters.isEmpty)
    #expect(try meeting.names("queues/jobs/workers") == [])
  }

  // MARK: A queue

  /// A claim that was refused is no attempt, and no other name is tried at once.
  @Test func aRefusedClaimIsMadeAgain() throws {
    try queue.send(contentsOf: [1, 2], .quick())
    let begin = Instant.now
    let worker = try work(2, ["rename~/claimed/@1:before:fail=EIO"])
    #expect(try worker.outcome().status == .exited(0))
    #expect(Instant.now - begin >= .seconds(1))
    #expect(try log() == ["1 1 false", "1 done", "2 1 false", "2 done"])
    try expectNothingLeft()
  }

  @Test func aRefusedListingIsMadeAgain() throws {
    try queue.send(contentsOf: [1, 2], .quick())
    let begin = Instant.now
    let worker = try work(2, (1...2).map { "getdents~jobs/inbox@\($0):before:fail=EIO" })
    #expect(try worker.outcome().status == .exited(0))
    #expect(Instant.now - begin >= .seconds(1))
    #expect(try log() == ["1 1 false", "1 done", "2 1 false", "2 done"])
    try expectNothingLeft()
  }

  /// Neither the handler nor the worker can write the outcome, and so the worker tries again after
  /// a second, and then after two.
  @Test func aRefusedAcknowledgementIsWrittenDownLater() throws {
    try queue.send(1, .quick())
    let worker = try work(2, (1...3).map { "unlink~/claimed/@\($0):before:fail=EIO" })
    try eventually("it is handled") { try log().contains("1 system") }
    try eventually("it is settled") { try queue.messages.isEmpty }
    try queue.send(2, .quick())
    #expect(try worker.outcome().status == .exited(0))
    #expect(try log() == ["1 1 false", "1 system", "2 1 false", "2 done"])
    try expectNothingLeft()
  }

  /// The outcome counts; the file without a message is swept by the next worker.
  @Test func aFileThatCannotBeRemovedDoesNotUndoTheAcknowledgement() throws {
    try queue.send(1, file: meeting.folder.path + "/file", .quick())
    #expect(try attached() == 1)
    let worker = try work(1, ["unlink~jobs/files/@1+:before:fail=EIO"])
    #expect(try worker.outcome().status == .exited(0))
    #expect(try log() == ["1 1 false", "1 done"])
    try expectNothingLeft()
    #expect(try attached() == 1)
    let next = try meeting.another().queue("jobs", of: Int.self).work { _, _ in }
    #expect(try attached() == 0)
    next.stop()
  }

  /// Puts a directory in the place of each message.
  private func replaceByDirectories(_ inbox: String) throws -> [String] {
    let names = try meeting.names(inbox)
    let folder = try meeting.folder(inbox)
    for name in names {
      try folder.unlink(name)
      try folder.makeDirectory(name, mode: 0o700)
    }
    return names
  }

  /// The kernel lets nobody but the owner move a directory.
  private func refusal(_ directory: String) -> String {
    "rename~\(directory)@1+:before:fail=EACCES"
  }

  @Test func aDirectoryAmongTheMessagesHoldsUpNoWorker() throws {
    try queue.send(8, .quick())
    let names = try replaceByDirectories("queues/jobs/inbox")
    try queue.send(1, .quick())
    let worker = try work(1, names.map(refusal))
    #expect(try worker.outcome().status == .exited(0))
    #expect(try log() == ["1 1 false", "1 done"])
    #expect(try meeting.names("queues/jobs/inbox") == names)
    #expect(try meeting.names("queues/jobs/workers") == [])
  }

  /// No rename would decide between two workers about the messages of a shared file.
  @Test func aBatchInAQueueIsDeadLettered() throws {
    let sent = try meeting.container.peer("watch").send(contentsOf: [1, 2], .quick())[0]
    // Makes the queue's directory.
    try queue.send(3, .quick())
    let name = try #require(try meeting.names("members/watch/inbox").first)
    try meeting.folder("members/watch/inbox").rename(
      name, to: meeting.folder("queues/jobs/inbox"), name)
    let heard = Heard<Int>()
    let working = try queue.work { number, _ in heard.add(number) }
    try heard.wait("the sound one") { !$0.isEmpty }
    try eventually("all has ended") { try queue.messages.isEmpty }
    working.stop()
    #expect(heard.all == [3])
    let letters = try queue.deadLetters
    #expect(letters.map(\.id) == [sent.id])
    #expect(letters.map(\.reason) == ["a message of a queue has one value"])
    #expect(letters.map(\.attempts) == [1])
    #expect(letters.map(\.count) == [2])
  }

  /// The sender has left, so that the worker alone settles the message.
  @Test func aWorkerSettlesWhatHasExpiredAndRemovesItsFile() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    let container = try meeting.another { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let phone = try container.join(as: "phone")
    try phone.queue("jobs", of: Int.self).send(
      1, file: meeting.folder.path + "/file", .quick { $0.timeToLive = .seconds(60) })
    phone.leave()
    let jobs = container.queue("jobs", of: Int.self)
    try jobs.send(2, .quick())
    clock.withLock { $0 += 7_200_000_000_000 }
    let heard = Heard<Int>()
    let working = try jobs.work { number, _ in heard.add(number) }
    try heard.wait("the other one") { !$0.isEmpty }
    working.stop()
    #expect(heard.all == [2])
    #expect(try attached() == 0)
    let outcomes = try container.peer("phone").pendingOutcomes
    #expect(outcomes.map(\.status) == [.expired])
    #expect(try jobs.deadLetters.isEmpty)
  }

  // MARK: A receiver

  /// Sends a message, as if its receiver had died in the first attempt.
  private func interrupt() throws {
    try meeting.container.peer("watch").send(1, .quick())
    // Makes the directory of the claims.
    try meeting.container.join(as: "watch").leave()
    let member = try meeting.folder("members/watch")
    try? member.makeDirectory("claimed", mode: 0o700)
    let name = try #require(try meeting.names("members/watch/inbox").first)
    try member.rename("inbox/\(name)", to: member, "claimed/\(name)~1")
  }

  private func receive(_ faults: [String]) throws -> ProcessOutcome {
    try Running(
      .receive(meeting.path, "watch", log: meeting.folder.path + "/log", until: 1),
      environment: environment(faults)
    ).outcome()
  }

  private func expectSecondAttempt(_ outcome: ProcessOutcome, complaint: String) throws {
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors.contains(complaint), "\(outcome.errors)")
    #expect(try log() == ["1 2 true", "1 done"])
    #expect(try meeting.names("members/watch/claimed") == [])
    #expect(try meeting.container.peer("watch").deadLetters.isEmpty)
  }

  /// A redelivery that was refused is no attempt.
  @Test func aRefusedRedeliveryIsMadeAgain() throws {
    try interrupt()
    let outcome = try receive(["rename~watch/claimed/@1:before:fail=EIO"])
    try expectSecondAttempt(outcome, complaint: "cannot claim message '")
  }

  @Test func directoriesAmongTheMessagesHoldUpNoReceiver() throws {
    let watch = meeting.container.peer("watch")
    for number in 8...9 { try watch.send(number, .quick()) }
    let names = try replaceByDirectories("members/watch/inbox")
    try watch.send(1, .quick())
    let outcome = try receive(names.map(refusal))
    #expect(outcome.status == .exited(0))
    #expect(try log() == ["1 1 false", "1 done"])
    #expect(try meeting.names("members/watch/inbox") == names)
  }

  @Test func aRefusedLookForInterruptedMessagesIsMadeAgain() throws {
    try interrupt()
    let outcome = try receive((1...2).map { "getdents~watch/claimed@\($0):before:fail=EIO" })
    try expectSecondAttempt(outcome, complaint: "cannot list claimed messages of 'watch': ")
  }
}
