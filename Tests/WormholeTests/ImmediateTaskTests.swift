import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The tasks of asynchronous closures for immediate messages and requests, at the end of their
/// subscriptions.
///
/// The tests wait without blocking, because the awaited closures run on the same threads.
@Suite struct ImmediateTaskTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func aStopCancelsTheCallWithAMessageAndFinishedWaitsForTheCall() async throws {
    let watch = try await container.join(as: "watch")
    let (heard, told) = AsyncStream<Void>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let ended = Monitor<Bool?>(nil)
    let hearing = watch.receiveImmediate { (_: ImmediateMessage) async in
      told.yield()
      // Over once the task is cancelled.
      for await _ in gate {}
      let wasCancelled = Task.isCancelled
      for _ in 0..<100 { await Task.yield() }
      ended.withLock { $0 = wasCancelled }
    }
    try await container.peer("watch").sendImmediately(1)
    for await _ in heard { break }
    hearing.stop()
    try await hearing.finished()
    #expect(ended.withLock { $0 } == true)
    opener.finish()
  }

  @Test func aStopCancelsTheCallWithARequestWhichRepliesNevertheless() async throws {
    let watch = try await container.join(as: "watch")
    let (heard, told) = AsyncStream<Void>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let ended = Monitor<Bool?>(nil)
    let responding = watch.respond(to: Int.self) { (number: Int) async -> Int in
      told.yield()
      for await _ in gate {}
      let wasCancelled = Task.isCancelled
      for _ in 0..<100 { await Task.yield() }
      ended.withLock { $0 = wasCancelled }
      return number + 1
    }
    let peer = container.peer("watch")
    let asking = Task {
      try await peer.request(1, as: Int.self, within: .seconds(600))
    }
    for await _ in heard { break }
    responding.stop()
    try await responding.finished()
    #expect(ended.withLock { $0 } == true)
    opener.finish()
    #expect(try await asking.value == 2)
  }

  /// A member that leaves ends all its subscriptions.
  @Test func aMemberThatLeavesCancelsTheCallToo() async throws {
    let watch = try await container.join(as: "watch")
    let (heard, told) = AsyncStream<Void>.makeStream()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let ended = Monitor<Bool?>(nil)
    let hearing = watch.receiveImmediate { (_: ImmediateMessage) async in
      told.yield()
      for await _ in gate {}
      ended.withLock { $0 = Task.isCancelled }
    }
    try await container.peer("watch").sendImmediately(1)
    for await _ in heard { break }
    await watch.leave()
    try await hearing.finished()
    #expect(ended.withLock { $0 } == true)
    opener.finish()
  }

  /// The closure has work left to do, and cannot wait for its own end.
  @Test func aClosureThatStopsItsOwnSubscriptionIsNotCancelled() async throws {
    let watch = try await container.join(as: "watch")
    let (heard, told) = AsyncStream<Bool>.makeStream()
    let own = Monitor<Subscription?>(nil)
    let hearing = watch.receiveImmediate { (_: ImmediateMessage) async in
      let same = own.withLock { $0 }
      same?.stop()
      _ = try? await same?.finished()
      told.yield(Task.isCancelled)
    }
    own.withLock { $0 = hearing }
    try await container.peer("watch").sendImmediately(1)
    var calls = heard.makeAsyncIterator()
    #expect(await calls.next() == false)
    try await hearing.finished()
    own.withLock { $0 = nil }
  }
}
