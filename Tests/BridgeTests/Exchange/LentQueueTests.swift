import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The home's claims for another machine, without servers.
@Suite(.blocking) struct LentQueueTests {
  private let folder: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    folder = try TemporaryDirectory()
    container = try SharedContainer(directory: folder.path + "/here")
  }

  /// The next message that is lent.
  private func job(of queue: LentQueue) throws -> LentQueue.Job {
    try eventually("a message is claimed") { !queue.fresh.isEmpty }
    let job = try #require(queue.fresh.first)
    queue.bound([job.id])
    return job
  }

  /// States the messages, as the heartbeats do, until another worker has one, and a while longer.
  private func state(_ ids: Set<String>, to queue: LentQueue, until isOver: () -> Bool) throws {
    try eventually("another worker has a message", within: .seconds(30)) {
      queue.renew(ids)
      return isOver()
    }
    let end = Instant.now + .seconds(2)
    while Instant.now < end {
      queue.renew(ids)
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
    }
  }

  /// A message stays claimed as long as the other machine states it, and no longer.
  @Test func onlyWhatIsStatedStaysClaimed() throws {
    let queue = try LentQueue("jobs", container) {}
    queue.setRoom(2)
    let jobs = container.queue("jobs", of: Int.self)
    try jobs.send(contentsOf: [1, 2])
    let (kept, dropped) = (try job(of: queue), try job(of: queue))
    queue.setRoom(0)
    let heard = Heard<String>()
    let working = try jobs.work { number, message in
      heard.add("\(message.id) \(message.attempt) \(message.isRedelivered)")
    }
    #expect(throws: Never.self) {
      try state([kept.id], to: queue) { !heard.all.isEmpty }
    }
    #expect(heard.all == ["\(dropped.name.id) 2 true"])
    #expect(try queue.end(dropped.id, .acknowledged) == false)
    #expect(try queue.end(kept.id, .acknowledged))
    // The worker acknowledges its message after its handler has returned.
    try eventually("none is left") { try jobs.messages.isEmpty }
    working.stop()
    queue.stop()
  }

  /// The other machine has no copy of the file.
  @Test func aMessageWithAFileAndALargeOneAreLeftToLocalWorkers() throws {
    try folder.write("content", to: "file")
    let jobs = container.queue("jobs", of: String.self)
    try jobs.send("file", file: folder.path + "/file")
    try jobs.send(String(repeating: "x", count: LentQueue.largestMessage))
    let small = try jobs.send("small")
    let queue = try LentQueue("jobs", container) {}
    // The oldest message that may be lent is claimed first.
    queue.setRoom(1)
    let lent = try job(of: queue)
    #expect(lent.name.id == small.id)
    queue.setRoom(0)
    #expect(try queue.end(lent.id, .acknowledged))
    let heard = Heard<String>()
    let working = try jobs.work { text, message in
      heard.add("\(text.prefix(4)) \(message.file?.size ?? 0) \(message.attempt)")
    }
    try heard.wait("both are handled here") { $0.count == 2 }
    #expect(heard.all.sorted() == ["file 7 1", "xxxx 0 1"])
    working.stop()
    queue.stop()
  }

  /// A message that went back and is lent again is another job: the end of the first one is late.
  @Test func aLateEndEndsNoOtherClaim() throws {
    let queue = try LentQueue("jobs", container) {}
    queue.setRoom(1)
    let jobs = container.queue("jobs", of: Int.self)
    try jobs.send(1)
    let first = try job(of: queue)
    #expect(try queue.end(first.id, .failed))
    let second = try job(of: queue)
    #expect(second.name == first.name && second.id != first.id && second.attempt == 2)
    #expect(try queue.end(first.id, .acknowledged) == false)
    #expect(try jobs.messages.count == 1)
    // A stated message that is not lent any more is taken away there.
    #expect(queue.renew([first.id, second.id]) == [first.id])
    #expect(try queue.end(second.id, .acknowledged))
    #expect(try jobs.messages.isEmpty)
    queue.stop()
  }
}
