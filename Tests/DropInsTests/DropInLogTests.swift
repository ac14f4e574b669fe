import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeDropIns
import WormholeSyscalls

/// The log for failures that the originals of the drop-in modules cannot report.
///
/// The tests run one after the other, because each of them redirects the log of the process.
@Suite(.serialized) struct DropInLogTests {
  @Test(.blocking, .notSanitized("it keeps what is on the stack elsewhere", by: .address))
  func theThousandthLineTakesNoMoreStackThanTheFirst() throws {
    let places = Heard<UInt>()
    let mark = "how deep is the stack?"
    DropInLog.redirect { entry in
      // Concurrent tests may log lines of their own.
      guard "\(entry)".contains(mark) else { return }
      var local = 0
      // Only the address of the variable is of interest.
      withUnsafePointer(to: &local) { places.add(UInt(bitPattern: $0)) }
    }
    defer { DropInLog.redirect(to: nil) }
    for _ in 0..<1000 { DropInLog.tell(.info, mark) }
    let all = places.all
    let (first, last) = try (#require(all.first), #require(all.last))
    #expect(all.count == 1000)
    #expect(max(first, last) - min(first, last) < 1024)
  }

  @Test(.blocking) func theEndOfAReplacedDestinationMayUseTheLog() throws {
    let outcomes = Heard<Bool>()
    DropInLog.redirect {
      [part = Departing(outcomes) { DropInLog.tell(.info, "the destination has ended") }] _ in
      withExtendedLifetime(part) {}
    }
    #expect(outcomes.all == [])
    DropInLog.redirect(to: nil)
    // A concurrent test may log a line at this moment, and hold the destination until then.
    try outcomes.wait("the end of the destination") { !$0.isEmpty }
    #expect(outcomes.all == [true])
  }

  /// The pauses between the attempts last 63 milliseconds together.
  @Test(.blocking) func aSilentCallFailsWithTheSeventhAttempt() throws {
    let lines = Heard<String>()
    let what = "a call during a shortage"
    DropInLog.redirect { entry in
      if entry.text.contains(what) { lines.add(entry.text) }
    }
    defer { DropInLog.redirect(to: nil) }
    let shortage = WormholeError(Errno.tooManyOpenFiles, "make", what)
    for (failures, attempts) in [(0, 1), (6, 7), (7, 7)] {
      var calls = 0
      let result: Int? = SilentCall.attempt { () throws -> Int in
        calls += 1
        guard calls > failures else { throw shortage }
        return calls
      }
      #expect(calls == attempts)
      #expect(result == (failures < 7 ? attempts : nil))
      #expect(lines.count == (failures < 7 ? 0 : 1))
    }
  }

  /// The advice differs for the main queue, which no thread may run, and for all other queues.
  @Test(.blocking) func aCallbackThatWaitsIsLoggedWithItsQueue() throws {
    let lines = Heard<String>()
    let what = "a callback of a suspended queue"
    DropInLog.redirect { entry in
      if entry.text.contains(what) { lines.add(entry.text) }
    }
    defer { DropInLog.redirect(to: nil) }
    let queue = DispatchQueue(label: "suspended")
    queue.suspend()
    defer { queue.resume() }
    CallbackQueue(queue, for: what).call {}
    try lines.wait("the log entry") { !$0.isEmpty }
    let advice = "find the call that blocks the queue 'suspended'"
    #expect(lines.all == ["\(what) has waited for its queue for 5 seconds: \(advice)"])
  }
}
