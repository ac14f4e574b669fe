import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WatchConnectivity

/// Code that stores a closure by the transfer that a call has returned, in a dictionary without a
/// lock, and calls the closure when the transfer has ended.
///
/// The code is a program of its own, because a race on the dictionary ends the process.
@Suite(.blocking) struct StoringTests {
  enum Place: String { case main, thread }

  @Test func aLoopOnTheMainQueueMeetsNoOutcome() throws { try meetsNoOutcome(on: .main) }

  /// The session cannot see the thread's last store: time alone separates it from the outcome.
  @Test(.notSanitized("a loop's last store on a thread is a race by design", by: .thread))
  func aLoopOnAThreadMeetsNoOutcome() throws { try meetsNoOutcome(on: .thread) }

  private func meetsNoOutcome(on place: Place) throws {
    let count = TestRun.isSanitized ? 500 : 3000
    for _ in 0..<(TestRun.isLong && !TestRun.isSanitized ? 100 : 1) {
      // On a busy machine a loop may take longer than outcomes are withheld.
      guard try (0..<5).contains(where: { _ in try runs(count, on: place) }) else {
        return skip("a loop that stores \(count) transfers", because: "the machine is too slow")
      }
    }
  }

  /// - Returns: false if the loop took longer than outcomes are withheld.
  private func runs(_ count: Int, on place: Place) throws -> Bool {
    let sides = try TwoSides()
    try sides.activateWatch()
    let phone = try Running(
      Programs.built("DropInPeer"), ["storing", "\(count)", place.rawValue],
      environment: [
        "WORMHOLE_ROLE=phone", "WORMHOLE_CONTAINER=\(sides.container)", "WORMHOLE_GROUP=",
        "WORMHOLE_DURABILITY=process",
      ])
    let outcome = try phone.outcome(within: .seconds(300))
    let lines = try phone.output.split(separator: "\n").map(String.init)
    if lines == ["slow"] { return false }
    let errors = try phone.errors
    #expect(outcome.status == .exited(0), "\(errors.prefix(2000))")
    #expect(lines.last == "in order")
    let arrived = sides.watchSide.heard.all.filter { $0.hasPrefix("info") }
    #expect(arrived == (0..<count).map { "info n=\($0)" })
    return true
  }

  /// The outcome of a transfer that is made on the main queue is told after the queue's turn.
  @Test func anOutcomeWaitsForTheEndOfTheTurn() throws {
    let sides = try TwoSides()
    try sides.activate()
    let (phone, heard) = (sides.phone, sides.phoneSide.heard)
    let arrived = sides.watchSide.heard
    func isTold(_ all: [String]) -> Bool { all.contains { $0.hasPrefix("finished") } }
    try DispatchQueue.main.sync {
      let start = Instant.now
      phone.transferUserInfo(["n": 1])
      try arrived.wait("the transfer") { $0.contains("info n=1") }
      // Without the mechanism the outcome follows at once.
      try? heard.wait("an early outcome", within: .seconds(1), until: isTold)
      #expect(!isTold(heard.all) || .now - start > .seconds(5))
    }
    try heard.wait("the outcome") { isTold($0) }
  }

  /// Off the main queue no loop's end is visible: the bound counts from the transfer's call.
  @Test func aThreadThatNeverPausesIsToldAllTheSame() throws {
    let (sides, isOver) = (try TwoSides(), Monitor(false))
    try sides.activate()
    let phone = sides.phone
    let sender = try Thread("sender") {
      repeat {
        phone.transferUserInfo(["n": 1])
      } while isOver.wait(until: .now + .milliseconds(20), { $0 ? true : nil }) == nil
    }
    #expect(throws: Never.self) {
      try sides.phoneSide.heard.wait("an end") { $0.contains { $0.hasPrefix("finished") } }
    }
    isOver.signal { $0 = true }
    sender.join()
  }

  /// A thread that has paused is done with storing, also if it makes more transfers later.
  @Test func theNextTransferWithholdsNoEarlierOutcome() throws {
    let time = StoringTime()
    let (earlier, later) = (TransferCore("earlier"), TransferCore("later"))
    time.storing(earlier) {}
    time.wait(for: earlier)
    let burst = try #require(earlier.waitForReturn()?.0)
    time.storing(later) { #expect(burst.isOver) }
  }
}
