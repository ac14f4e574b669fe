import Foundation
import TestSupport
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// What a program learns when a lock, a member or a container ends under its tasks.
@Suite struct TaskEndTests {
  /// The lock file of the next generation shows that another process has taken the lock over.
  @Test func aTaskLearnsThatItsLockWasTakenOver() async throws {
    let meeting = try Meeting()
    let (lock, folder, ran) = (meeting.container.lock("till"), meeting.folder, Heard<Int>())
    let error = try await failure {
      try await lock.hold {
        await Task.yield()
        try folder.write("", to: "c/system/lock.till/lock/2")
        ran.add(1)
      }
    }
    #expect(error.code == .superseded && error.subject == "till")
    #expect(
      error.reason == "another process took over the lock while this process held it")
    #expect(ran.all == [1])
  }

  /// The error of the body counts, as without a takeover.
  @Test func theErrorOfTheBodyComesBeforeATakeover() async throws {
    let meeting = try Meeting()
    let (lock, folder) = (meeting.container.lock("till"), meeting.folder)
    await #expect(throws: Missing.self) {
      try await lock.hold {
        await Task.yield()
        try folder.write("", to: "c/system/lock.till/lock/2")
        throw Missing()
      }
    }
  }

  @Test func aClosureThatOutlivesItsMemberIsLogged() async throws {
    let log = Heard<LogEntry>()
    let meeting = try Meeting { $0.log = { log.add($0) } }
    let sender = try await meeting.another().join(as: "phone")
    let watch = try await meeting.container.join(as: "watch")
    try await sender.peer("watch").send(1, .quick())
    let (begun, mayEnd) = (Heard<Int>(), Monitor(false))
    try watch.receive { message in
      begun.add(message.attempt)
      while !mayEnd.withLock({ $0 }) { await Task.yield() }
    }
    try await begun.comes("the closure") { $0 == [1] }
    let time = Duration.milliseconds(20)
    await watch.leave(within: time)
    mayEnd.withLock { $0 = true }
    let entry = try #require(log.all.first { $0.text.contains("leaves though") })
    #expect(entry.level == .warning && entry.member == "watch")
    #expect(
      entry.text == "'watch' leaves though 1 of its closures have not returned within \(time): "
        + "their messages will be redelivered, as another attempt")
    await sender.leave()
  }

  /// The loop waits when the container is moved away: the reason is not known before.
  @Test func aLoopThatWaitsForAQueueLearnsOfTheContainersEnd() async throws {
    let meeting = try Meeting()
    let (loop, codes) = (Loop(), Heard<WormholeError.Code?>())
    let deliveries = meeting.container.queue("jobs", of: Int.self).deliveries()
    let task = Task { codes.add(await loop.end(of: deliveries)) }
    try await loop.begun.comes("the worker") { $0.count == 1 }
    await loop.pass()
    try meeting.folder.descriptor.rename("c", to: meeting.folder.descriptor, "away")
    try await codes.comes("the end") { $0.count == 1 }
    #expect(codes.all == [.notAContainer])
    await task.value
  }

  /// The system refuses the worker at the next home, and the task is cancelled right then: before
  /// the pause that precedes another attempt.
  @Test func aCancelledLoopDoesNotPauseForAnotherAttempt() async throws {
    let (background, isOver, ends) = (Monitor<WorkQueue?>(nil), Monitor(false), Heard<String>())
    defer { isOver.signal { $0 = true } }
    let meeting = try Meeting {
      $0.log = { entry in
        guard entry.level == .error, entry.member == "jobs" else { return }
        withUnsafeCurrentTask { task in
          // A pause ends on this queue, and thus after this call.
          background.withLock { $0 }?.soon {
            let _: Void? = isOver.wait(until: Instant.now + patience * 2) { $0 ? () : nil }
            ends.add("the pause")
          }
          task?.cancel()
        }
      }
    }
    background.withLock { $0 = meeting.container.background }
    let loop = Loop()
    let deliveries = meeting.container.queue("jobs", of: Int.self).deliveries()
    let task = Task {
      _ = await loop.end(of: deliveries)
      ends.add("the loop")
    }
    try await loop.begun.comes("the worker") { $0.count == 1 }
    // The worker at the next home would need a directory of this name.
    try meeting.folder.write("", to: "c/queues/jobs/away")
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    try home.write(Elsewhere(machine: "0123456789abcdef", since: Date()))
    try await ends.comes("the end") { $0.contains("the loop") }
    #expect(ends.all == ["the loop"])
    await task.value
  }

  @MainActor @Test func theEndOfAModelsContainerIsLoggedOnce() async throws {
    let entries = Heard<LogEntry>()
    let meeting = try Meeting()
    let container = try meeting.another { $0.log = { entries.add($0) } }
    let model = try ObservableChannel(container.channel("config", default: 4))
    #expect(model.value == 4)
    try FileManager.default.removeItem(atPath: meeting.path)
    try await becomes("the log entry") { entries.all.contains { $0.channel == "config" } }
    #expect(entries.all.filter { $0.channel == "config" }.map(\.code) == [.notAContainer])
    #expect(model.value == 4, "the last value stays")
  }
}

/// A loop over the messages of a queue.
private actor Loop {
  let begun = Heard<Int>()

  /// Waits for a message, and returns the code of the error.
  func end(of deliveries: QueueDeliveries) async -> WormholeError.Code? {
    var iterator = deliveries.makeAsyncIterator()
    begun.add(1)
    do throws(WormholeError) {
      _ = try await iterator.next(isolation: #isolation)
    } catch {
      return error.code
    }
    return nil
  }

  /// Returns once the loop waits, because a running loop occupies the actor.
  func pass() {}
}
