import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A loop that is busy with a message is notified of no further message, and misses none.
@Suite struct LullSequenceTests {
  private let pair: Pair

  init() throws { pair = try Pair() }

  /// Sends once the loop is likely to wait.
  private func sendSoon(_ number: Int) throws {
    let phone = pair.phone
    try Thread("sender") {
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(3)) { _ in nil }
      _ = try? phone.send(number, .quick())
    }.detach()
  }

  @Test func whoAsksAgainIsToldAgain() async throws {
    var messages = pair.watch.deliveries(acknowledging: .automatic).makeAsyncIterator()
    for round in 0..<25 {
      let first = 5 * round + 1
      try sendSoon(first)
      #expect(try await messages.next(isolation: nil)?.value() == first)
      // The loop does not wait now: after the first notice, no notice arrives.
      try pair.send(first + 1...first + 4)
      for number in first + 1...first + 4 {
        #expect(try await messages.next(isolation: nil)?.value() == number)
      }
    }
  }
}
