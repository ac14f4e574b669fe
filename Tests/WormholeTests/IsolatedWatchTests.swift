import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Watches with callbacks on actors, and with asynchronous callbacks.
///
/// The tests wait without blocking, because the awaited callbacks run on the same threads.
@Suite struct IsolatedWatchTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var number: Channel<Int> { container.channel("number") }

  init() throws { meeting = try Meeting() }

  @Test func aClosureOfTheMainActorRunsThere() async throws {
    let (heard, told) = AsyncStream<Int?>.makeStream()
    let watch = try number.watch { @MainActor snapshot in
      MainActor.preconditionIsolated()
      told.yield(snapshot.value)
    }
    var news = heard.makeAsyncIterator()
    for value in 1...5 {
      try await number.put(value)
      #expect(await news.next() == value)
    }
    watch.stop()
  }

  @Test func aClosureMayWaitForAnActor() async throws {
    let board = Board()
    let watch = try await board.watch(number)
    for value in 1...5 {
      try await number.put(value)
      await board.wait(for: value)
    }
    #expect(await board.values == [1, 2, 3, 4, 5])
    watch.stop()
  }

  @Test func anAsynchronousClosureIsCalledOnceAtATimeWithTheNewest() async throws {
    let (heard, told) = AsyncStream<Int?>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let (calls, counts) = (Monitor(0), Heard<Int>())
    let watch = try number.watch { snapshot in
      counts.add(
        calls.withLock { calls in
          calls += 1
          return calls
        })
      told.yield(snapshot.value)
      for await _ in gate { break }
      calls.withLock { $0 -= 1 }
    }
    var news = heard.makeAsyncIterator()
    try await number.put(1)
    #expect(await news.next() == 1)
    for value in 2...20 { try await number.put(value) }
    // Another watch has received the last value, so this watch has been notified too.
    var snapshots = number.values.makeAsyncIterator()
    while try await snapshots.next(isolation: nil) != 20 {}
    opener.yield()
    #expect(await news.next() == 20)
    opener.finish()
    watch.stop()
    #expect(Set(counts.all) == [1])
  }

  /// `stop()` does not wait for a callback in progress: the actor itself may be stopping the watch.
  @Test @MainActor func whoStopsOnTheActorIsNotCalledAgain() async throws {
    for round in 0..<50 {
      let stage = Stage()
      let (heard, told) = AsyncStream<Void>.makeStream()
      let watch = try number.watch { @MainActor _ in
        if stage.isStopped { stage.lateCalls += 1 }
        stage.calls += 1
        told.yield()
      }
      let putter = try Thread("putter") { for _ in 0..<10 { _ = try? number.put(round) } }
      for await _ in heard { break }
      watch.stop()
      stage.isStopped = true
      putter.join()
      await Task.yield()
      #expect(stage.calls > 0)
      #expect(stage.lateCalls == 0)
    }
  }

  @Test func aClosureMayStopItsOwnWatch() async throws {
    let (heard, told) = AsyncStream<Int?>.makeStream()
    let box = Monitor<Subscription?>(nil)
    let watch = try number.watch(initial: false) { @MainActor snapshot in
      box.withLock { $0 }?.stop()
      told.yield(snapshot.value)
    }
    box.withLock { $0 = watch }
    try await number.put(1)
    var news = heard.makeAsyncIterator()
    #expect(await news.next() == 1)
    try await number.put(2)
    var values = number.values.makeAsyncIterator()
    #expect(try await values.next(isolation: nil) == 2)
    told.finish()
    #expect(await news.next() == nil)
    box.withLock { $0 = nil }
  }

  @Test func failuresAreToldOnTheActorToo() async throws {
    let (failures, told) = AsyncStream<WormholeError.Code>.makeStream()
    let watch = try number.watch { @MainActor _ in
    } failure: { @MainActor error in
      MainActor.preconditionIsolated()
      told.yield(error.code)
    }
    try await container.channel("number").put("text")
    for await code in failures {
      #expect(code == .typeMismatch)
      break
    }
    watch.stop()
  }

  /// A callback that neither waits nor belongs to an actor is called without a task.
  @Test func aPlainClosureNeedsNoTask() async throws {
    let (heard, told) = AsyncStream<Bool>.makeStream()
    let watch = try number.watch { _ in
      told.yield(withUnsafeCurrentTask { $0 == nil })
    }
    try await number.put(1)
    for await hasNoTask in heard {
      #expect(hasNoTask)
      break
    }
    watch.stop()
  }

  /// The present state would be reported in the order of the names.
  @Test func aWatchOfAPrefixMayBeginWithTheNextChange() async throws {
    try await number.put(1)
    let (heard, told) = AsyncStream<String>.makeStream()
    let watches = [
      try container.watch(prefix: "num", of: Int.self, initial: false) {
        @MainActor in told.yield($0.channel)
      },
      try container.watch(prefix: "num", of: Int.self, initial: false) { snapshot in
        await Task.yield()
        told.yield(snapshot.channel)
      },
    ]
    try await container.channel("numbers", of: Int.self).put(2)
    var news = heard.makeAsyncIterator()
    for _ in watches { #expect(await news.next() == "numbers") }
    for watch in watches { watch.stop() }
  }

  @Test func allThatCanBeWatchedHasThisDoor() async throws {
    let (heard, told) = AsyncStream<String>.makeStream()
    let note: @MainActor @Sendable (String) -> Void = { word in
      MainActor.preconditionIsolated()
      told.yield(word)
    }
    let notice = container.notice("ready")
    let defaults = container.defaults("app")
    let watches = [
      try container.watch([number]) { @MainActor in note("several \($0.channel)") },
      try container.watch(prefix: "num", of: Int.self) {
        @MainActor in note("prefix \($0.channel)")
      },
      try notice.watch { @MainActor in note("notice") },
      try defaults.watch("key", of: Int.self, initial: false) {
        @MainActor in note("key \($0 ?? 0)")
      },
    ]
    try await number.put(1)
    try notice.post()
    try await defaults.set(3, forKey: "key")
    var missing: Set = ["several number", "prefix number", "notice", "key 3"]
    for await word in heard {
      missing.remove(word)
      if missing.isEmpty { break }
    }
    for watch in watches { watch.stop() }
  }
}

/// An actor that watches.
private actor Board {
  private(set) var values: [Int] = []
  private var waiting: [(value: Int, continuation: CheckedContinuation<Void, Never>)] = []

  func watch(_ channel: Channel<Int>) throws(WormholeError) -> Subscription {
    try channel.watch { snapshot in
      await self.hear(snapshot.value ?? 0)
    }
  }

  private func hear(_ value: Int) {
    values.append(value)
    for entry in waiting where entry.value == value { entry.continuation.resume() }
    waiting.removeAll { $0.value == value }
  }

  func wait(for value: Int) async {
    if values.contains(value) { return }
    await withCheckedContinuation { waiting.append((value, $0)) }
  }
}

/// The state that a callback and a test on the main actor share.
@MainActor private final class Stage {
  var isStopped = false
  var calls = 0
  var lateCalls = 0
}
