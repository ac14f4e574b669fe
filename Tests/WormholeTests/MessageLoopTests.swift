import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Returning acknowledges, throwing fails the attempt, and an orderly end is no attempt.
@Suite struct MessageLoopTests {
  private let meeting: Meeting
  private let phone: Peer

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    phone = try meeting.container.join(as: "phone").peer("watch")
  }

  private func join() throws -> Member { try meeting.container.join(as: "watch") }

  private func claimed() throws -> [String] {
    try meeting.names("members/watch/claimed").filter { $0 != "room" }
  }

  /// The next delivery, to a new incarnation of the member.
  private func next() throws -> Handed {
    let watch = try join()
    defer { watch.leave() }
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    try heard.wait("the next delivery") { !$0.isEmpty }
    receiving.stop()
    return heard.all[0]
  }

  // MARK: Loops

  @Test func askingForTheNextMessageAcknowledgesTheLast() async throws {
    var sent: [Sent] = []
    for number in 1...3 { sent.append(try await phone.send(number, .quick())) }
    let watch = try join()
    var states: [[Sent.State]] = []
    for try await number in watch.messages(of: Int.self) {
      states.append(try sent.map { try $0.state })
      if number == 3 { break }
    }
    #expect(
      states == [
        [.claimed, .waiting, .waiting], [.ended, .claimed, .waiting], [.ended, .ended, .claimed],
      ])
  }

  @Test func aCancelledLoopAcknowledgesWhatItHasHandled() async throws {
    let sent = try await phone.send(1, .quick())
    let watch = try join()
    let task = Task {
      for try await _ in watch.messages(of: Int.self) { withUnsafeCurrentTask { $0?.cancel() } }
    }
    try await task.value
    #expect(try sent.state == .ended)
    #expect(try claimed() == [])
  }

  @Test func aLoopThatIsLeftHasFailedTheAttempt() async throws {
    try await phone.send(1, .quick())
    let watch = try join()
    for try await _ in watch.messages(of: Int.self) { break }
    for try await message in watch.messages() {
      #expect(try Handed(message) == Handed(1, 2))
      break
    }
    await watch.leave()
    #expect(try next() == Handed(1, 3))
  }

  @Test func aCancelledLoopThatIsLeftRequeuesItsMessage() async throws {
    try await phone.send(1, .quick())
    let watch = try join()
    let task = Task {
      for try await _ in watch.messages(of: Int.self) {
        withUnsafeCurrentTask { $0?.cancel() }
        break
      }
    }
    try await task.value
    await watch.leave()
    #expect(try next() == Handed(1, marked: true))
  }

  @Test func aLoopContinuesAfterAValueThatDoesNotDecode() async throws {
    let watch = try join()
    try await phone.send("no number", .quick { $0.kind = "Int" })
    try await phone.send(2, .quick())
    for try await number in watch.messages(of: Int.self) {
      #expect(number == 2)
      break
    }
  }

  @Test func theFirstDeliveryWithoutAnOutcomeIsReported() async throws {
    let log = Heard<String>()
    let meeting = try Meeting {
      $0.mailbox.retryDelay = .milliseconds(1)
      $0.log = { entry in if entry.level == .warning { log.add(entry.text) } }
    }
    let phone = try await meeting.container.join(as: "phone").peer("watch")
    try await phone.send(1, .quick())
    let watch = try await meeting.container.join(as: "watch")
    var attempts = 0
    for try await message in watch.deliveries {
      attempts = message.attempt
      guard attempts == 3 else { continue }
      try message.acknowledge()
      break
    }
    #expect(attempts == 3)
    #expect(log.all.count { $0.contains("released without") } == 1)
  }

  // MARK: Closures

  /// The closure throws because its task is cancelled: the attempt does not count, and the next
  /// incarnation learns that a part of the work may have been done.
  @Test func leavingCancelsAClosureAndCountsNoAttempt() async throws {
    try await phone.send(1, .quick())
    let watch = try join()
    let begun = Heard<Int>()
    let cancelled = Heard<Bool>()
    let receiving = try watch.receive { message in
      begun.add(message.attempt)
      await untilCancelled()
      cancelled.add(Task.isCancelled)
      throw CancellationError()
    }
    try await begun.comes("the closure") { $0 == [1] }
    await watch.leave(within: patience)
    #expect(cancelled.all == [true])
    try await receiving.finished()
    #expect(try next() == Handed(1, marked: true))
  }

  /// The mark stays until a later attempt has ended, also in the incarnation that set it.
  @Test func anInterruptedMessageIsMarkedForEachLaterReceiver() async throws {
    try await phone.send(1, .quick())
    try await phone.send(contentsOf: [2, 3], .quick())
    var watch = try join()
    for _ in 1...3 {
      for _ in 1...2 {
        let begun = Heard<Handed>()
        let receiving = try watch.receive { message in
          begun.add(try Handed(message))
          await untilCancelled()
          throw CancellationError()
        }
        try await begun.comes("the closure") { $0.count == 1 }
        #expect(begun.all[0].attempt == 1)
        receiving.stop()
        try await receiving.finished()
      }
      await watch.leave()
      watch = try join()
    }
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    try await heard.comes("all") { $0.count == 3 }
    receiving.stop()
    let marked = heard.all.filter(\.isMarked)
    #expect(heard.all.map(\.number) == [1, 2, 3] && heard.all.allSatisfy { $0.attempt == 1 })
    #expect(marked == [Handed(1, marked: true)])
  }

  /// Of a batch, only the interrupted message is marked.
  @Test func anInterruptedMessageOfABatchIsMarked() async throws {
    let sent = try await phone.send(contentsOf: [1, 2, 3], .quick { $0.wantsOutcome = true })[0]
    let watch = try join()
    let begun = Heard<Int>()
    try watch.receive { message in
      begun.add(try message.value())
      guard begun.count == 2 else { return }
      await untilCancelled()
      throw CancellationError()
    }
    try await begun.comes("the second") { $0 == [1, 2] }
    await watch.leave(within: patience)
    let heard = Heard<Handed>()
    let next = try join()
    let receiving = try next.note(heard)
    try await heard.comes("the others") { $0.count == 2 }
    receiving.stop()
    #expect(heard.all == [Handed(2, marked: true), Handed(3)])
    // The mark of a message is not the one of a dead letter.
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
  }

  /// An interrupted handler may have moved the file away; the message is no damaged one for that.
  @Test func anInterruptedMessageMayHaveLostItsFile() async throws {
    let folder = try TemporaryDirectory()
    try folder.write("all", to: "report")
    try await phone.send(file: folder.path + "/report")
    let watch = try join()
    let begun = Heard<Int>()
    try watch.receive { message in
      try await message.file?.move(to: folder.path + "/taken")
      begun.add(message.attempt)
      await untilCancelled()
      throw CancellationError()
    }
    try await begun.comes("the closure") { $0 == [1] }
    await watch.leave(within: patience)
    let heard = Heard<Bool>()
    let next = try join()
    let receiving = try next.receive { message in
      heard.add(try message.isRedelivered && message.file?.exists == false)
    }
    try await heard.comes("the message") { $0.count == 1 }
    receiving.stop()
    #expect(heard.all == [true])
  }

  @Test func aClosureThatReturnsThoughCancelledHasHandledItsMessage() async throws {
    let sent = try await phone.send(1, .quick())
    let watch = try join()
    let begun = Heard<Int>()
    try watch.receive { message in
      begun.add(message.attempt)
      await untilCancelled()
    }
    try await begun.comes("the closure") { $0 == [1] }
    await watch.leave(within: patience)
    #expect(try sent.state == .ended)
    #expect(try claimed() == [])
  }

  @Test func finishedWaitsForTheClosure() async throws {
    try await phone.send(1, .quick())
    let watch = try join()
    let begun = Heard<Int>()
    let ended = Heard<Int>()
    let receiving = try watch.receive { message in
      begun.add(message.attempt)
      await untilCancelled()
      for _ in 1...100 { await Task.yield() }
      ended.add(message.attempt)
    }
    try await begun.comes("the closure") { $0 == [1] }
    receiving.stop()
    try await receiving.finished()
    #expect(ended.all == [1])
  }

  /// A closure that ignores its cancellation: the message is redelivered as after a crash.
  @Test func aClosureThatDoesNotEndInTimeIsCountedAndMarked() async throws {
    try await phone.send(1, .quick())
    let watch = try join()
    let begun = Heard<Message>()
    let mayEnd = Monitor(false)
    try watch.receive { message in
      begun.add(message)
      while !mayEnd.withLock({ $0 }) { await Task.yield() }
    }
    try await begun.comes("the closure") { $0.count == 1 }
    await watch.leave(within: .milliseconds(20))
    #expect(try next() == Handed(1, 2))
    // The return of the closure would acknowledge it too, and only the first acknowledgement fails.
    #expect(throws: WormholeError.self) { try begun.all[0].acknowledge() }
    mayEnd.withLock { $0 = true }
  }

  @Test(.blocking) func aSynchronousClosureThatThrowsWhileItsMemberLeavesCountsNoAttempt() throws {
    try phone.send(1, .quick())
    let watch = try join()
    let begun = Heard<Int>()
    try watch.receive { message in
      begun.add(message.attempt)
      watch.leave()
      throw CancellationError()
    }
    try begun.wait("the closure") { $0 == [1] }
    try eventually("the name is free") { try? join() }.leave()
    #expect(try next() == Handed(1, marked: true))
  }

  @Test(.blocking) func aRequeuedMessageIsNoAttemptForTheNextIncarnation() throws {
    try phone.send(1, .quick())
    let watch = try join()
    let messages = try watch.take(1)
    messages[0].requeue(after: .seconds(1000))
    watch.leave()
    #expect(try next() == Handed(1))
  }
}

/// Waits until the task is cancelled.
private func untilCancelled() async {
  while !Task.isCancelled { await Task.yield() }
}
