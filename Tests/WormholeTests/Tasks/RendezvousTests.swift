import Testing
import WormholeSyscalls

@testable import Wormhole

/// The handover of single elements from a thread to a task.
@Suite struct RendezvousTests {
  private let handover = Rendezvous<Int>()

  /// Offers an element on a thread; returns the results of the offer.
  private func offer(_ element: Int) throws -> AsyncStream<Bool> {
    let (results, sink) = AsyncStream<Bool>.makeStream()
    try Thread("offer") { [handover] in
      sink.yield(handover.offer(element))
      sink.finish()
    }.detach()
    return results
  }

  private func first(_ results: AsyncStream<Bool>) async -> Bool? {
    for await result in results { return result }
    return nil
  }

  @Test(.timeLimit(.minutes(1))) func anElementIsHandledOnceTheNextIsRequested() async throws {
    let one = try offer(1)
    #expect(await handover.next() == 1)
    let following = Task { [handover] in await handover.next() }
    #expect(await first(one) == true)
    let two = try offer(2)
    #expect(await following.value == 2)
    // The task never requests another element.
    handover.end()
    #expect(await first(two) == false)
    #expect(await handover.next() == nil)
  }

  @Test(.timeLimit(.minutes(1))) func afterTheEndNothingIsHandled() async throws {
    handover.end()
    #expect(try await first(offer(1)) == false)
    #expect(await handover.next() == nil)
  }
}
