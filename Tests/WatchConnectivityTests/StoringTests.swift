import Foundation
import Synchronization
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WormholeSyscalls

/// Code that stores a closure by the transfer that a call has returned, in a dictionary without a
/// lock, and calls the closure when the transfer has ended.
@Suite(.blocking) struct StoringTests {
  /// As an app has it: neither the loop nor the delegate knows of threads.
  private final class App: @unchecked Sendable {
    // Unguarded on purpose: the session keeps loop and delegate apart.
    var completions: [WCSessionUserInfoTransfer: () -> Void] = [:]
    let isStoring = Atomic(false)
    let ended = Heard<Int>()
    let tooEarly = Atomic(0)

    /// - Returns: how long the loop took.
    func send(_ count: Int, _ session: WCSession) -> Duration {
      let began = Instant.now
      isStoring.store(true, ordering: .sequentiallyConsistent)
      for number in 0..<count {
        let transfer = session.transferUserInfo(["n": number])
        completions[transfer] = { self.ended.add(number) }
      }
      isStoring.store(false, ordering: .sequentiallyConsistent)
      return .now - began
    }

    func finished(_ transfer: WCSessionUserInfoTransfer) {
      if isStoring.load(ordering: .sequentiallyConsistent) {
        tooEarly.add(1, ordering: .relaxed)
        return
      }
      completions.removeValue(forKey: transfer)?()
    }
  }

  enum Place: CaseIterable { case mainQueue, thread }

  @Test(arguments: Place.allCases) func aLoopThatStoresCompletionsMeetsNoOutcome(
    on place: Place
  ) throws {
    // On a busy machine a loop may take longer than outcomes are withheld: then a shorter one.
    var count = 3000
    while try !meetsNoOutcome(count, on: place) {
      count /= 2
      try #require(count > 100, "the machine is too slow")
    }
  }

  /// - Returns: false if the loop took longer than outcomes are withheld.
  private func meetsNoOutcome(_ count: Int, on place: Place) throws -> Bool {
    let (app, sides, duration) = (App(), try TwoSides(), Monitor<Duration?>(nil))
    sides.phoneSide.onFinish = { transfer, _ in
      app.finished(transfer as! WCSessionUserInfoTransfer)
    }
    try sides.activate()
    let phone = sides.phone
    let loop = { @Sendable in
      let took = app.send(count, phone)
      duration.signal { $0 = took }
    }
    switch place {
    case .mainQueue: DispatchQueue.main.async(execute: loop)
    case .thread: try Thread("sender", loop).detach()
    }
    try sides.phoneSide.transfers.wait("all ends") { $0.count == count }
    guard let took = duration.wait(until: nil, { $0 }), took < .seconds(5) else { return false }
    #expect(app.tooEarly.load(ordering: .relaxed) == 0)
    try app.ended.wait("all completions") { $0.count == count }
    #expect(app.ended.all == Array(0..<count))
    let arrived = sides.watchSide.heard.all.filter { $0.hasPrefix("info") }
    #expect(arrived == (0..<count).map { "info n=\($0)" })
    return true
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
}
