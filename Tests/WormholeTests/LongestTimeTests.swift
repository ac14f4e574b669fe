import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The shortest and the longest possible times, for all parameters that are times.
@Suite struct LongestTimeTests {
  private static let past = [Duration.seconds(Int64.min), .seconds(-1), .zero]

  @Test(.blocking, arguments: past) func aLockThatIsHeldIsNotWaitedFor(_ time: Duration) throws {
    let meeting = try Meeting.patient()
    let other = try meeting.another(Meeting.havePatience)
    let (gate, lock) = (Gate(), meeting.container.lock("till"))
    let thread = try Thread("holder") { try? other.lock("till").hold { gate.pass() } }
    try gate.waitForSomebody()
    #expect(try failure { try lock.hold(within: time) {} }.code == .timedOut)
    gate.open()
    thread.join()
    try lock.hold(within: .seconds(Int64.max), takeOverAfter: .seconds(Int64.max)) { _ in }
    try lock.hold(within: .seconds(Int64.max), takeOverAfter: .seconds(Int64.min)) { _ in }
  }

  /// Otherwise waiters would poll without a pause.
  @Test(.blocking, arguments: past) func aLeaseLastsForAMoment(_ time: Duration) throws {
    let meeting = try Meeting { $0.lease = time }
    #expect(meeting.container.storage.options.lease == .milliseconds(10))
  }

  @Test(arguments: past) func aRequestIsTooLate(_ time: Duration) async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: Int.self) { $0 * 2 }
    let error = await #expect(throws: WormholeError.self) {
      try await pair.phone.request(1, as: Int.self, within: time)
    }
    #expect(error?.code == .timedOut)
    let longest = Duration.seconds(Int64.max)
    #expect(try await pair.phone.request(2, as: Int.self, within: longest) == 4)
    responding.stop()
  }

  @Test(arguments: past) func aWaitForTheEndOfAMessageIsTooLate(_ time: Duration) async throws {
    let pair = try Pair()
    let sent = try pair.send([1])[0]
    let error = await #expect(throws: WormholeError.self) {
      try await sent.waitForStatus(within: time)
    }
    #expect(error?.code == .timedOut)
    let receiving = try pair.watch.receive(Int.self) { _, _ in }
    #expect(try await sent.waitForStatus(within: .seconds(Int64.max)) == .delivered)
    receiving.stop()
  }

  @Test(.blocking) func whatIsPutBackForGoodHoldsUpNobody() throws {
    let pair = try Pair { $0.mailbox.retryDelay = .seconds(Int64.max) }
    try pair.send([1, 2]) { $0.timeToLive = .seconds(Int64.max) }
    try pair.send([3])
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive { message in
      let number = try message.value(as: Int.self)
      heard.add(number)
      if number == 2 { throw Refusal() }
      guard number == 1 else { return }
      let isFirst = heard.all.filter { $0 == 1 }.count == 1
      message.requeue(after: .seconds(isFirst ? Int64.min : .max))
    }
    try heard.wait("all") { $0.count == 4 }
    // A message that was redelivered at once would arrive before this message.
    try pair.send([4])
    try heard.wait("the last") { $0.contains(4) }
    #expect(heard.all.sorted() == [1, 1, 2, 3, 4])
    receiving.stop()
  }
}
