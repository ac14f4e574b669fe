import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// A receiver that is stopped just after it has ended a lull no longer lists the inbox, so the
/// other receivers have to.
@Suite(.blocking) struct LullStopTests {
  @Test func whoeverIsStoppedAtTheEndOfALullHasTheOthersLook() throws {
    let pair = try Pair()
    let mailbox = pair.watch.mailbox
    let kicks = Monitor(0)
    let runners = [Worker(on: WorkQueue()), Worker(on: WorkQueue())]
    let numbers = try runners.map { try mailbox.add($0, kinds: nil) }
    // No caller waits for either of the receivers, so both count as busy.
    runners[0].begin(isAsked: { false }) {}
    runners[1].begin(isAsked: { false }) { kicks.signal { $0 += 1 } }
    for runner in runners { runner.trigger() }
    func takeOne() throws {
      guard case .work(.file(let file)) = mailbox.step(for: numbers[0], until: { false }) else {
        throw TooLate(description: "there is no message")
      }
      let hand = BatchCursor(file)
      while let message = hand.next() { try message.acknowledge() }
    }
    try pair.send([1])
    // The second receiver is notified, and with the notice the lull begins.
    try kicked(kicks, after: 0)
    try takeOne()
    // Steps before the end of the lull trigger the other receiver as well: only later triggers
    // count.
    var (before, hasEnded) = (0, false)
    // The first receiver may first give way to the second.
    for _ in 0..<1000 where mailbox.inbox.isPaused {
      _ = mailbox.step(for: numbers[0]) {
        guard !mailbox.inbox.isPaused, !hasEnded else { return hasEnded }
        hasEnded = true
        while kicks.wait(until: .now + .milliseconds(50), { $0 > before ? $0 : nil }) != nil {
          before = kicks.withLock { $0 }
        }
        return true
      }
    }
    #expect(!mailbox.inbox.isPaused)
    try kicked(kicks, after: before)
    for (runner, number) in zip(runners, numbers) {
      runner.end()
      mailbox.remove(number)
    }
  }

  /// While the receiver is busy, no notice arrives, and messages are known to wait.
  @Test func anUrgentMessagePassesThoseThatAreKnownToWait() throws {
    let pair = try Pair()
    let inbox = pair.watch.mailbox.inbox
    let (heard, gate) = (Heard<Int>(), Monitor(false))
    let receiving = try pair.watch.receive { message in
      let number = try message.value(as: Int.self)
      heard.add(number)
      guard number == 1 else { return }
      let _: Bool? = gate.wait(until: .now + patience) { $0 ? true : nil }
    }
    try pair.phone.send(1)
    try heard.wait("the first") { $0 == [1] }
    try eventually("the watch is paused") {
      try pair.phone.send(2)
      return inbox.isPaused
    }
    for _ in 0..<20 { try pair.phone.send(3) }
    try pair.phone.send(4, SendOptions(isUrgent: true))
    try eventually("a listing is due") { inbox.isLookDue }
    gate.signal { $0 = true }
    try heard.wait("all of them") { $0.filter { $0 == 3 }.count == 20 }
    receiving.stop()
    #expect(heard.all.prefix(2) == [1, 4])
  }

  private func kicked(_ kicks: Monitor<Int>, after before: Int) throws {
    guard kicks.wait(until: .now + patience, { $0 > before ? true : nil }) == true else {
      throw TooLate(description: "nobody is kicked")
    }
  }
}
