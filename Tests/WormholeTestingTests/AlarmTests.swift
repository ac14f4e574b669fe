import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// A clock gets no more alarms than there are new events to wake for, however long an earlier event
/// is still pending.
@Suite struct AlarmTests {
  @Test func deadlinesOfRequestsDoNotPileUp() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    let kept = Heard<Request>()
    let responding = two.second.respond(toKind: nil) { kept.add($0) }
    let ends = Heard<Bool>()
    two.toSecond.request(0, as: Int.self, within: .seconds(3600)) { _ in }
    for round in 1...20 {
      two.toSecond.request(round, as: Int.self, within: .seconds(1)) { end in
        ends.add((try? end.get()) == nil)
      }
      clock.advance(by: .seconds(1))
      try await eventually("it ends") { ends.count == round }
    }
    #expect(ends.all.allSatisfy { $0 })
    #expect(clock.alarms <= 2)
    responding.stop()
  }

  @Test func timesToLiveDoNotPileUp() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    var options = SendOptions()
    options.durability = .process
    options.timeToLive = .seconds(3600)
    try await two.toSecond.send(0, options)
    options.timeToLive = .seconds(1)
    for number in 1...20 {
      let sent = try await two.toSecond.send(number, options)
      // The first message has the later deadline, and the earlier alarm.
      let next = try #require(clock.untilNextAlarm)
      try #require(next <= .milliseconds(1001), "\(next)")
      clock.advance(by: .seconds(2))
      #expect(try await sent.waitForStatus() == .expired)
    }
    #expect(clock.alarms <= 5)
  }

  /// No receiver takes the message, and the host's clock goes on all the time.
  @Test func aTimeToLiveIsAnAlarmOfTheClock() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(clock: clock)
    var options = SendOptions()
    options.durability = .process
    options.timeToLive = .milliseconds(100)
    let sent = try await two.toSecond.send(1, options)
    let next = try #require(clock.untilNextAlarm)
    try #require(next <= .milliseconds(101), "\(next)")
    clock.advance(by: .milliseconds(101))
    #expect(try await sent.waitForStatus() == .expired)
  }

  @Test func whatAReceiverWaitsForDoesNotPileUp() async throws {
    let clock = TestClock()
    let worker = Worker(on: WorkQueue(), staysOnQueue: true, MailTime(moved: clock))
    let far = clock.present + .seconds(3600)
    let runs = Heard<Int>()
    worker.begin {
      // Before the run is counted, because the clock is moved then.
      worker.trigger(at: runs.count % 2 == 1 ? clock.present + .seconds(1) : far)
      runs.add(1)
    }
    worker.trigger()
    for round in 1...20 {
      try await eventually("it has run") { runs.count >= 2 * round - 1 }
      worker.trigger()
      try await eventually("it has run again") { runs.count >= 2 * round }
      clock.advance(by: .seconds(2))
    }
    try await eventually("it has run at last") { runs.count >= 41 }
    #expect(clock.alarms <= 3)
    worker.end()
  }

  /// The host's clock is an hour behind the clock of the alarm.
  @Test func aRetryWaitsOnTheClockOfTheAlarm() async throws {
    let clock = TestClock()
    clock.advance(by: .seconds(3600))
    let worker = Worker(on: WorkQueue(), staysOnQueue: true, MailTime(moved: clock))
    let runs = Heard<Int>()
    worker.begin { runs.add(1) }
    worker.retry()
    #expect(clock.untilNextAlarm == Duration.seconds(1))
    clock.advance(by: .seconds(1))
    try await eventually("it has run") { runs.count == 1 }
    #expect(clock.alarms == 0)
    worker.end()
  }
}
