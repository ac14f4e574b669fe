import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Files of messages in a queue, which several workers may have one after another.
@Suite struct QueueFileTests {
  private let meeting: Meeting
  private let queue: Queue<Int>

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    queue = meeting.container.queue("jobs")
    try meeting.folder.write("content", to: "file")
  }

  private var file: String { path("file") }
  private func path(_ name: String) -> String { meeting.folder.path + "/" + name }
  private func exists(_ name: String) -> Bool { (try? meeting.folder.read(name)) != nil }
  private func other() throws -> Queue<Int> { try meeting.another().queue("jobs") }
  /// The files of messages.
  private func kept() throws -> Int {
    try meeting.names("queues/jobs/files").filter { $0 != "room" }.count
  }

  @Test func aWorkerTakesACopy() async throws {
    let sent = try await meeting.container.join(as: "phone").queue("jobs", of: Int.self)
      .send(7, file: file, .quick())
    #expect(try kept() == 1)
    let (heard, path) = (Heard<String>(), path("copy"))
    let working = try other().work { job, message in
      let file = try #require(message.file)
      heard.add("\(job) \(file.name) \(file.size)")
      try await file.move(to: path)
      // The message keeps its file until it is acknowledged.
      heard.add("\(try file.exists)")
    }
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    working.stop()
    #expect(heard.all == ["7 file 7", "true"])
    #expect(
      try meeting.folder.read("copy") == "content" && meeting.folder.read("file") == "content")
    try await eventuallyAsync("the file is gone") { try kept() == 0 }
  }

  @Test func theCopyOfARequeuedMessageIsRemoved() async throws {
    try await queue.send(1, file: file, .quick())
    let (heard, path) = (Heard<Bool>(), path("copy"))
    let working = try queue.work { [self] _, message in
      heard.add(exists("copy"))
      try await message.file?.move(to: path)
      if heard.count == 1 { message.requeue() }
    }
    try await heard.comes("both deliveries") { $0.count == 2 }
    try await eventuallyAsync("it is handled") { try queue.messages.isEmpty }
    working.stop()
    #expect(heard.all == [false, false])
    #expect(try meeting.folder.read("copy") == "content")
  }

  @Test func theCopyOfAFailedAttemptIsRemoved() async throws {
    try await queue.send(1, file: file, mode: .moving, .quick())
    #expect(!exists("file"))
    let (heard, path) = (Heard<Handed>(), path("copy"))
    let working = try queue.work { _, message in
      heard.add(try Handed(message))
      try await message.file?.move(to: path)
      if message.attempt == 1 { throw Refused() }
    }
    try await heard.comes("both attempts") { $0 == [Handed(1), Handed(1, 2)] }
    try await eventuallyAsync("it is handled") { try queue.messages.isEmpty && kept() == 0 }
    working.stop()
    #expect(try meeting.folder.read("copy") == "content")
  }

  /// Otherwise the next attempt would find its path taken, and the message would become a dead
  /// letter.
  @Test func theCopyOfAnAttemptThatIsNotDurableIsRemoved() async throws {
    try await queue.send(1, file: file, .quick { $0.durability = .power })
    let (heard, path) = (Heard<WormholeError.Code?>(), path("copy"))
    let working = try queue.work { _, message in
      let file = try #require(message.file)
      // The first sync is that of the content, the second that of the name.
      let rules = message.attempt == 1 ? [FaultRule(.fsync, number: 2, .fail(.inputOutput))] : []
      do {
        try FaultPoints.with(rules) { try file.move(to: path) }
      } catch let error as WormholeError {
        heard.add(error.code)
        throw error
      }
      heard.add(nil)
    }
    try await eventuallyAsync("it is handled") { try queue.messages.isEmpty && kept() == 0 }
    working.stop()
    #expect(heard.all == [.notDurable, nil])
    #expect(try queue.deadLetters.isEmpty)
    #expect(try meeting.folder.read("copy") == "content")
  }

  @Test func whatALateWorkerHasTakenIsRemoved() async throws {
    try await queue.send(1, file: file, .quick())
    var hung = queue.deliveries(handlingDeadline: .seconds(10)).makeAsyncIterator()
    let late = try #require(try await hung.next(isolation: nil))
    try await late.file?.move(to: path("late"))
    #expect(exists("late"))
    let (heard, path) = (Heard<Handed>(), path("copy"))
    let working = try other().work { _, message in
      try await message.file?.move(to: path)
      heard.add(try Handed(message))
    }
    try await heard.comes("the second attempt") { $0 == [Handed(1, 2)] }
    let error = #expect(throws: WormholeError.self) { try late.acknowledge() }
    #expect(error?.code == .superseded)
    #expect(!exists("late"))
    let second = await #expect(throws: WormholeError.self) {
      try await late.file?.move(to: self.path("again"))
    }
    #expect(second?.code == .superseded)
    try await eventuallyAsync("it is handled") { try queue.messages.isEmpty && kept() == 0 }
    working.stop()
    #expect(try meeting.folder.read("copy") == "content")
  }

  /// A file that another program has put there in the meantime is not the late worker's.
  @Test func anotherFileIsNotRemoved() async throws {
    try await queue.send(1, file: file, .quick())
    do {
      var loop = queue.deliveries().makeAsyncIterator()
      let message = try #require(try await loop.next(isolation: nil))
      try await message.file?.move(to: path("copy"))
      try meeting.folder.descriptor.unlink("copy")
      try meeting.folder.write("other", to: "copy")
      message.requeue()
    }
    #expect(try meeting.folder.read("copy") == "other")
    #expect(try queue.messages.count == 1 && kept() == 1)
  }

  @Test func noFileOutlivesItsMessage() async throws {
    let first = try await meeting.container.join(as: "phone").queue("jobs", of: Int.self)
      .send(1, file: file, .quick())
    #expect(try first.cancel() == .cancelled && kept() == 0)
    try await queue.send(2, file: file, .quick { $0.timeToLive = .nanoseconds(1) })
    let working = try queue.work { _, _ in throw Refused() }
    try await eventuallyAsync("it has expired") { try queue.messages.isEmpty && kept() == 0 }
    let dead = try await queue.send(3, file: file, .quick())
    try await eventuallyAsync("it is dead") { try queue.deadLetters.count == 1 }
    working.stop()
    // A dead letter keeps its file for another attempt.
    #expect(try kept() == 1 && queue.retry(id: dead.id))
    let heard = Heard<Bool>()
    let second = try queue.work { _, message in heard.add(try message.file?.exists == true) }
    try await heard.comes("the retried one") { $0 == [true] }
    try await eventuallyAsync("it is handled") { try queue.messages.isEmpty && kept() == 0 }
    second.stop()
  }

  @Test func aDamagedFileIsADeadLetter() async throws {
    let sent = try await queue.send(1, file: file, .quick())
    let name = try #require(try meeting.names("queues/jobs/files").first { $0 != "room" })
    let files = try meeting.container.storage.root.descriptor.open(
      "queues/jobs/files", [.readOnly, .directory])
    let damaged = try files.open(name, [.writeOnly])
    try damaged.writeFully(Array("CONTENT".utf8))
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    try await eventuallyAsync("it is dead") { try queue.deadLetters.count == 1 }
    working.stop()
    #expect(heard.all == [])
    let reason = try #require(try queue.deadLetters.first?.reason)
    #expect(reason.contains("checksum"), "\(reason)")
    #expect(try queue.discard(id: sent.id) && kept() == 0)
  }

  /// A worker may just have claimed the message whose file is looked at.
  @Test(.blocking) func noFileOfAQueueWithALivingWorkerIsSwept() throws {
    try queue.send(1, file: file, .quick())
    let callers = try other().callers(handlingDeadline: nil)
    let inbox = try meeting.folder("queues/jobs/inbox")
    for name in try inbox.names() { try inbox.unlink(name) }
    for isLooking in [true, false] {
      #expect(meeting.container.sweepFiles(isLooking: isLooking).map(\.subject) == [])
    }
    #expect(try kept() == 1)
    callers.stop()
    #expect(meeting.container.sweepFiles(isLooking: false).count == 1)
    #expect(try kept() == 0)
  }

  /// A process died after it had settled the message.
  @Test func aFileWithoutAMessageIsSwept() async throws {
    try await queue.send(1, file: file, .quick())
    let inbox = try meeting.container.storage.root.descriptor.open(
      "queues/jobs/inbox", [.readOnly, .directory])
    func forget() throws { for name in try inbox.names() { try inbox.unlink(name) } }
    try forget()
    let advice = meeting.container.sweepFiles(isLooking: true).map(\.advice)
    #expect(advice == ["the next worker of 'jobs' removes the file"])
    let working = try other().work { _, _ in }
    #expect(try kept() == 0)
    working.stop()
    // While another worker may claim messages, nothing is swept.
    try await queue.send(2, file: file, .quick())
    var loop = queue.deliveries().makeAsyncIterator()
    let message = try #require(try await loop.next(isolation: nil))
    let second = try other().work { _, _ in }
    #expect(try kept() == 1)
    try message.acknowledge()
    second.stop()
    #expect(try kept() == 0)
  }
}

private struct Refused: Error {}
