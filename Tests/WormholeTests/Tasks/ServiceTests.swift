import TestSupport
import Testing
import Wormhole

/// A service ends when its closure returns, and when the task that runs the service is cancelled.
@Suite struct ServiceTests {
  @Test func withoutASignalACancellationIsAnError() async throws {
    await #expect(throws: CancellationError.self) {
      try await runService(until: []) { throw CancellationError() }
    }
    await #expect(throws: Missing.self) { try await runService(until: []) { throw Missing() } }
  }

  @Test func theCallersCancellationReachesTheService() async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let words = Heard<String>()
    let caller = Task {
      try await runService(until: []) {
        beginning.yield()
        while !Task.isCancelled { await Task.yield() }
        words.add("cancelled")
        throw CancellationError()
      }
    }
    for await _ in began { break }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(words.all == ["cancelled"])
  }
}
