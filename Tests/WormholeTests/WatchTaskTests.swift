import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The task of a watch with an asynchronous closure, at the end of the watch.
///
/// The tests wait without blocking, because the awaited closures run on the same threads.
@Suite struct WatchTaskTests {
  private let meeting: Meeting
  private var number: Channel<Int> { meeting.container.channel("number") }

  init() throws { meeting = try Meeting() }

  @Test func aStopCancelsTheCallInProgressAndFinishedWaitsForTheCall() async throws {
    let (heard, told) = AsyncStream<Void>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let ended = Monitor<Bool?>(nil)
    let watch = try number.watch { _ in
      told.yield()
      // Over once the task is cancelled.
      for await _ in gate {}
      let wasCancelled = Task.isCancelled
      for _ in 0..<100 { await Task.yield() }
      ended.withLock { $0 = wasCancelled }
    }
    try await number.put(1)
    for await _ in heard { break }
    watch.stop()
    try await watch.finished()
    #expect(ended.withLock { $0 } == true)
    opener.finish()
  }

  @Test func theCloseOfTheInstanceCancelsTheCallToo() async throws {
    let (heard, told) = AsyncStream<Void>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let ended = Monitor<Bool?>(nil)
    let container = try meeting.another()
    let watch = try container.notice("ready").watch { () async -> Void in
      told.yield()
      for await _ in gate {}
      ended.withLock { $0 = Task.isCancelled }
    }
    try meeting.container.notice("ready").post()
    for await _ in heard { break }
    await container.close()
    try await watch.finished()
    #expect(ended.withLock { $0 } == true)
    opener.finish()
  }

  /// The closure has work left to do, and cannot wait for its own end.
  @Test func aClosureThatStopsItsOwnWatchIsNotCancelled() async throws {
    let (heard, told) = AsyncStream<Bool>.makeStream()
    let own = Monitor<Subscription?>(nil)
    let watch = try number.watch(initial: false) { _ in
      let same = own.withLock { $0 }
      same?.stop()
      _ = try? await same?.finished()
      told.yield(Task.isCancelled)
    }
    own.withLock { $0 = watch }
    try await number.put(1)
    var calls = heard.makeAsyncIterator()
    #expect(await calls.next() == false)
    try await watch.finished()
    own.withLock { $0 = nil }
  }
}
