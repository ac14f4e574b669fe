import TestSupport
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// A clock that the test moves, and the features that depend on the clock.
@Suite struct TestClockTests {
  @Test func alarmsRingInOrder() async throws {
    let clock = TestClock()
    let heard = Heard<Int>()
    let start = clock.present
    for (number, pause) in [(2, 20), (1, 10), (3, 31)] {
      clock.ring(at: start + .seconds(pause)) { heard.add(number) }
    }
    #expect(clock.alarms == 3)
    #expect(clock.untilNextAlarm == .seconds(10))
    clock.advance(by: .seconds(30))
    #expect(heard.all == [1, 2])
    #expect(clock.elapsed == .seconds(30))
    try await clock.advanceToNextAlarm()
    #expect(heard.all == [1, 2, 3])
    #expect(clock.elapsed == .seconds(31))
    clock.ring(at: start) { heard.add(4) }
    #expect(heard.all == [1, 2, 3, 4])
    let error = try await failure { try await clock.advanceToNextAlarm(within: .milliseconds(1)) }
    #expect(error.code == .timedOut)
  }

  /// A program's own code takes `any Clock<Duration>`.
  @Test func sleepersWakeWhenTheClockIsMoved() async throws {
    let clock = TestClock()
    let given: any Clock<Duration> = clock
    let heard = Heard<Int>()
    try await withThrowingTaskGroup { group in
      for (number, pause) in [(2, 20), (1, 10), (3, 31)] {
        group.addTask {
          try await given.sleep(for: .seconds(pause))
          heard.add(number)
        }
      }
      try await eventually("all sleep") { clock.alarms == 3 }
      clock.advance(by: .seconds(10))
      try await eventually("the first wakes") { heard.all == [1] }
      clock.advance(by: .seconds(20))
      try await eventually("the second wakes") { heard.all == [1, 2] }
      try await clock.advanceToNextAlarm()
      try await group.waitForAll()
    }
    #expect(heard.all == [1, 2, 3])
    #expect(given.measure { clock.advance(by: .seconds(5)) } == .seconds(5))
    // A time that has come already is not waited for.
    try await clock.sleep(until: clock.now.advanced(by: .seconds(-1)))
    #expect(clock.alarms == 0)
  }

  @Test func aCancelledSleepEndsAndLeavesNoAlarm() async throws {
    let clock = TestClock()
    let sleeper = Task { try await clock.sleep(for: .seconds(60)) }
    try await eventually("it sleeps") { clock.alarms == 1 }
    sleeper.cancel()
    let result = await sleeper.result
    #expect(throws: CancellationError.self) { try result.get() }
    #expect(clock.alarms == 0)
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await clock.sleep(for: .seconds(60))
    }
    let early = await cancelled.result
    #expect(throws: CancellationError.self) { try early.get() }
    #expect(clock.alarms == 0 && clock.elapsed == .zero)
  }

  @Test func messagesExpireByIt() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    var options = SendOptions()
    options.timeToLive = .seconds(3600)
    let late = try await two.toSecond.send(1, options)
    clock.advance(by: .seconds(3601))
    let inTime = try await two.toSecond.send(2, options)
    let heard = Heard<Int>()
    let receiving = try two.second.receive(Int.self) { value, _ in heard.add(value) }
    #expect(try await late.waitForStatus(within: .seconds(1)) == .expired)
    #expect(try await inTime.waitForStatus(within: .seconds(1)) == .delivered)
    #expect(heard.all == [2])
    // The clock stops at its last time; the result is still a valid time.
    clock.advance(by: .seconds(Int64.max))
    let last = try await two.toSecond.send(3, options)
    #expect(try await last.waitForStatus(within: .seconds(1)) == .delivered)
    receiving.stop()
  }

  @Test func failedMessagesComeAgainByIt() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    let heard = Heard<Int>()
    let receiving = try two.second.receive(Int.self) { _, message in
      heard.add(message.attempt)
      if message.attempt < 3 { throw Refusal() }
    }
    let sent = try await two.toSecond.send(1)
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .milliseconds(100))
    try await heard.comes([1, 2])
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .milliseconds(300))
    #expect(try await sent.waitForStatus() == .delivered)
    #expect(heard.all == [1, 2, 3])
    receiving.stop()
  }

  @Test func failedMessagesOfALoopComeAgainByIt() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    try await two.toSecond.send(1)
    let loop = Task {
      for try await message in two.second.deliveries {
        if message.attempt == 2 { return try message.acknowledge() }
        try message.fail("not yet")
      }
    }
    try await clock.advanceToNextAlarm()
    try await loop.value
    #expect(clock.elapsed == .milliseconds(100))
  }

  @Test func requestsTimeOutByIt() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    let kept = Heard<Request>()
    let responding = two.second.respond(toKind: nil) { kept.add($0) }
    let asking = Task {
      try await two.toSecond.request(1, as: Int.self, within: .seconds(100))
    }
    try await eventually("the request") { kept.count == 1 }
    clock.advance(by: .seconds(99))
    #expect(kept.all[0].timeLeft <= .seconds(1))
    clock.advance(by: .seconds(1))
    let error = try await failure { _ = try await asking.value }
    #expect(error.code == .timedOut)
    responding.stop()
  }

  @Test func waitingForAnOutcomeEndsByIt() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    let sent = try await two.toSecond.send(1)
    let waiting = Task { try await sent.waitForStatus(within: .seconds(5)) }
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .seconds(5))
    let error = try await failure { _ = try await waiting.value }
    #expect(error.code == .timedOut)
  }

  @Test func waitingForRoomEndsByIt() async throws {
    let clock = TestClock()
    var options = Options()
    options.mailbox.maximumQueuedMessages = 1
    let two = try await TwoMembers(clock: clock, options: options)
    try await two.toSecond.send(1)
    var patient = SendOptions()
    patient.whenFull = .wait(.seconds(3600))
    let heard = Heard<WormholeError.Code?>()
    let sender = try Thread("sender") { [patient] in
      do throws(WormholeError) {
        try two.toSecond.send(2, patient)
        heard.add(nil)
      } catch {
        heard.add(error.code)
      }
    }
    try await clock.advanceToNextAlarm()
    try await eventually("the sender to give up") { heard.count == 1 }
    sender.join()
    #expect(heard.all == [.full])
    #expect(clock.elapsed == .seconds(3600))
  }

  /// Messages of another process are in order with messages of this process, though the clocks
  /// differ.
  @Test func locksAndOrderKeepTheMachinesClock() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    let other = try await two.container.open()
    try await two.toSecond.send("a")
    try await other.peer("watch").send("b")
    clock.advance(by: .seconds(1_000_000))
    try await two.toSecond.send("c")
    let heard = Heard<String>()
    let receiving = try two.second.receive(String.self) { value, _ in heard.add(value) }
    try await heard.comes(["a", "b", "c"])
    let count = two.first.name.count
    try await other.channel("count", of: Int.self).put(count)
    receiving.stop()
  }
}
