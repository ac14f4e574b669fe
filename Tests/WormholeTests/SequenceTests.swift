import Foundation
import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Watching with asynchronous sequences.
@Suite struct SequenceTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var number: Channel<Int> { container.channel("number") }

  init() throws { meeting = try Meeting() }

  @Test func thePresentValueThenEachChange() async throws {
    try await number.put(1)
    var values = number.values.makeAsyncIterator()
    #expect(try await values.next() == 1)
    try await number.put(2)
    #expect(try await values.next() == 2)
    try await number.clear()
    #expect(try await values.next() == .some(nil))
    try await number.put(2)
    #expect(try await values.next() == 2)
  }

  @Test func whoIsSlowGetsTheNewest() async throws {
    var snapshots = number.snapshots().makeAsyncIterator()
    try await number.put(1)
    #expect(try await snapshots.next()?.value == 1)
    for value in 2...50 { try await number.put(value) }
    let last = try await snapshots.next()
    #expect(last?.value == 50)
    #expect(last?.version == 50)
  }

  @Test func withoutThePresentItBeginsWithTheCall() async throws {
    try await number.put(1)
    let changes = number.snapshots(initial: false)
    try await number.put(2)
    var iterator = changes.makeAsyncIterator()
    #expect(try await iterator.next()?.value == 2)
  }

  @Test func cancellationEndsTheSequenceAndReleasesTheWatch() async throws {
    let heard = Heard<Int?>()
    let task = Task { [number] in
      for try await value in number.values { heard.add(value) }
      return "ended"
    }
    try await number.put(1)
    try await becomes("1 is heard") { heard.all == [1] }
    #expect(container.watchers > 0)
    task.cancel()
    #expect(try await task.value == "ended")
    #expect(container.watchers == 0)
  }

  @Test func aTaskThatIsCancelledAlreadyGetsNothing() async throws {
    try await number.put(1)
    let task = Task { [number] in
      withUnsafeCurrentTask { $0?.cancel() }
      for try await _ in number.values { return false }
      return true
    }
    #expect(try await task.value)
    #expect(container.watchers == 0)
  }

  @Test func leavingTheLoopReleasesTheWatch() async throws {
    try await number.put(1)
    for try await value in number.values {
      #expect(value == 1)
      #expect(container.watchers > 0)
      break
    }
    try await becomes("released") { container.watchers == 0 }
  }

  @Test func anErrorIsThrownAndTheIteratorGoesOn() async throws {
    try await container.channel("number").put("text")
    var values = number.values.makeAsyncIterator()
    do {
      _ = try await values.next()
      Issue.record("it was no number")
    } catch {
      #expect(error.code == .typeMismatch)
    }
    try await number.put(2)
    #expect(try await values.next() == 2)
  }

  @Test func whatCannotBeWatchedThrowsAndEnds() async throws {
    var values = container.channel("", of: Int.self).values.makeAsyncIterator()
    do {
      _ = try await values.next()
      Issue.record("the name is empty")
    } catch {
      #expect(error.code == .invalidName)
    }
    #expect(try await values.next() == nil)
  }

  @Test func whenTheContainerIsRemovedItThrowsAndEnds() async throws {
    try await number.put(1)
    var values = number.values.makeAsyncIterator()
    #expect(try await values.next() == 1)
    _ = try run("rm", ["-r", meeting.path])
    do {
      while let value = try await values.next() { #expect(value == nil || value == 1) }
      Issue.record("it was not told")
    } catch {
      #expect(error.code == .notAContainer)
    }
    #expect(try await values.next() == nil)
  }

  @Test func severalAndPrefixes() async throws {
    var several = container.snapshots(of: [number, container.channel("other")]).makeAsyncIterator()
    var prefix = container.snapshots(prefix: "num", of: Int.self).makeAsyncIterator()
    try await number.put(1)
    #expect(try await several.next()?.channel == "number")
    #expect(try await prefix.next()?.value == 1)
    try await container.channel("other").put(2)
    try await container.channel("num").put(3)
    #expect(try await several.next()?.value == 2)
    #expect(try await prefix.next()?.channel == "num")
  }

  /// Two iterations of a sequence do not take elements from each other.
  @Test func eachIterationWatchesForItself() async throws {
    let values = number.values
    var (first, second) = (values.makeAsyncIterator(), values.makeAsyncIterator())
    try await number.put(1)
    #expect(try await first.next() == 1)
    #expect(try await second.next() == 1)
  }

  /// More tasks wait than the pool has threads; a further task still runs.
  @Test func waitingTasksBlockNoThread() async throws {
    let tasks = (0..<64).map { _ in
      Task { [number] in
        for try await value in number.values where value == 5 { return true }
        return false
      }
    }
    try await becomes("all wait") { container.watchers == 64 }
    try await number.put(5)
    for task in tasks { #expect(try await task.value) }
  }
}

/// Waits, without holding up the pool's thread, until the condition holds.
func becomes(_ what: String, _ condition: () throws -> Bool) async throws {
  let deadline = Instant.now + patience
  while try !condition() {
    if Instant.now > deadline { throw TooLate(description: what) }
    await Task.yield()
  }
}
