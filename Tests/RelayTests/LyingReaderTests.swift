import TestSupport
import TestTraits
import Testing
import WormholeHubProtocol
import WormholeRelay
import WormholeSyscalls

/// A reader that meets one irregularity at a time.
@Suite(.blocking) struct LyingReaderTests {
  /// A round whose first ten messages have been read.
  private static func round() throws -> LyingRound {
    let round = try LyingRound(seed: 1, messages: 10, lies: .none)
    try round.run("ten are read", within: .seconds(5)) { round.isComplete }
    return round
  }

  private static func add(_ count: Int, to round: LyingRound) {
    for _ in 0..<count {
      round.server.log.append(HubMessage("s.x", Array("x".utf8)))
    }
  }

  @Test func aConsumerThatVanishesIsMissedAfterFourSeconds() throws {
    let round = try Self.round()
    round.server.forgetConsumers()
    Self.add(2, to: round)
    let lost = round.now
    try round.run("two more are read", within: .seconds(6)) { round.isComplete }
    #expect(round.now - lost > .seconds(2))
    #expect(round.reader?.restarts == 1 && round.server.counts.consumers == 2)
    #expect(round.server.counts.connections == 1)
    try round.finish()
  }

  @Test func aLostDeliveryIsRevealedByTheNextOneOrByAHeartbeat() throws {
    for count in [1, 2] {
      let round = try Self.round()
      Self.add(1, to: round)
      round.server.lies.drop = 1000
      _ = round.server.step(round.now)
      round.server.lies.drop = 0
      Self.add(count - 1, to: round)
      try round.run("all are read", within: .seconds(3)) { round.isComplete }
      #expect(round.reader?.restarts == 1)
      try round.finish()
    }
  }

  /// The number of waiting messages never becomes 0, and a heartbeat proves that none waits.
  @Test func aReaderIsCaughtUpThoughMessagesExpireUndelivered() throws {
    let round = try LyingRound(seed: 1, messages: 10, lies: .none)
    round.server.expiringMessages = 3
    try round.run("ten are read", within: .seconds(5)) { round.isComplete }
    #expect(round.reader?.restarts == 0)
    try round.finish()
  }

  @Test func aRepeatedDeliveryIsGivenOnce() throws {
    let round = try Self.round()
    Self.add(5, to: round)
    round.server.lies.duplicate = 1000
    try round.run("all are read", within: .seconds(3)) { round.isComplete }
    #expect(round.reader?.restarts == 0)
    try round.finish()
  }

  @Test(arguments: [
    "409 Consumer Deleted", "409 Leadership Change", "409 Server Shutdown", "503", "500 x", "000",
    "404 No Messages", "408 Request Timeout", "100 Idle Heartbeat\r\nNats-Last-Consumer: 77",
  ])
  func aStatusThatEndsTheRequestLeadsToANewConsumer(_ status: String) throws {
    let round = try Self.round()
    // At the beginning of a request, because a request that has lasted ends without trouble.
    round.server.forgetConsumers()
    round.server.sendStatus(status)
    let restarts = { round.reader?.restarts ?? 0 }
    try round.run("a new consumer reads", within: .seconds(8)) {
      restarts() > 0 && round.reader?.failure == nil
    }
    let pulls = round.server.counts.pulls
    round.server.sendStatus(status)
    try round.run("another consumer reads", within: .seconds(5)) {
      round.server.counts.pulls > pulls && round.reader?.failure == nil
    }
    Self.add(1, to: round)
    try round.run("a new message is read", within: .seconds(5)) { round.isComplete }
    try round.finish()
  }

  /// Only a server that ends requests without a delivery is asked less often.
  @Test(arguments: ["404 No Messages", "408 Request Timeout"])
  func aRequestThatWasServedMayEndEarly(_ status: String) throws {
    let round = try Self.round()
    Self.add(1, to: round)
    try round.run("one more is read", within: .seconds(1)) { round.isComplete }
    let pulls = round.server.counts.pulls
    round.server.sendStatus(status)
    try round.run("messages are asked for again", within: .seconds(1)) {
      round.server.counts.pulls > pulls
    }
    #expect(round.reader?.restarts == 0 && round.server.counts.consumers == 1)
    try round.finish()
  }

  /// The bridge forgets each record that a new consumer has not delivered.
  @Test func aMessageIsGivenBeforeTheRestartThatArrivesWithIt() throws {
    let round = try Self.round()
    Self.add(1, to: round)
    round.server.serveConsumers()
    round.server.sendStatus("409 Consumer Deleted")
    round.server.forgetConsumers()
    try round.run("the message is given", within: .seconds(1)) { round.given.count == 11 }
    #expect(round.restartsWhenGiven == 0)
    try round.run("a new consumer reads", within: .seconds(8)) {
      round.server.counts.consumers == 2 && round.isComplete
    }
    #expect(round.reader?.restarts == 1)
    try round.finish()
  }

  @Test func aServerThatEndsEachRequestIsAskedRarely() throws {
    let round = try Self.round()
    let (begin, pulls) = (round.now, round.server.counts.pulls)
    let end = begin + .seconds(30)
    try round.run("half a minute passes", within: .seconds(31)) {
      round.server.sendStatus("404 No Messages")
      return round.now >= end
    }
    #expect((10...60).contains(round.server.counts.pulls - pulls))
    Self.add(1, to: round)
    try round.run("a new message is read", within: .seconds(5)) { round.isComplete }
    try round.finish()
  }

  @Test(arguments: ["100", "100 Idle Heartbeat\r\nNats-Last-Consumer: x", "100 FlowControl"])
  func aHeartbeatWithoutNumberIsHarmless(_ status: String) throws {
    let round = try Self.round()
    round.server.sendStatus(status)
    Self.add(1, to: round)
    try round.run("a new message is read", within: .seconds(1)) { round.isComplete }
    #expect(round.reader?.restarts == 0)
    try round.finish()
  }

  @Test func aRestoredStreamIsReadFromItsBeginning() throws {
    let round = try Self.round()
    let log = round.server.log
    round.server.log = Array(log.prefix(4))
    round.server.forgetConsumers()
    var again = 0
    let stream = try #require(round.stream)
    let reader = StreamReader(stream, stream: "S", filter: "s.>", from: .after(10)) {
      again += $0.count
    }
    try round.run("the stream is read again", within: .seconds(6)) {
      reader.proceed(round.now)
      return again == 4
    }
    #expect(reader.wasReset && reader.resets == 1 && reader.position == 4)
    // The whole stream was read up to its end: there is no reset.
    let same = StreamReader(stream, stream: "S", filter: "s.>", from: .after(4)) { _ in }
    try round.run("the reader at the end is caught up", within: .seconds(6)) {
      same.proceed(round.now)
      return same.isCaughtUp
    }
    #expect(!same.wasReset)
  }

  @Test func attemptsBecomeRareAndFrequentAgain() throws {
    let round = try Self.round()
    let stream = try #require(round.stream)
    round.server.lies.refusal = 1000
    let reader = StreamReader(stream, stream: "S", filter: "s.>", from: .after(0)) { _ in }
    let end = round.now + .seconds(60)
    try round.run("a minute passes", within: .seconds(70)) {
      reader.proceed(round.now)
      return round.now >= end
    }
    #expect((25...70).contains(reader.restarts), "every 2 s at last, and more often at first")
    #expect(reader.failure != nil && !reader.isCaughtUp)
    round.server.lies.refusal = 0
    try round.run("the reader reads", within: .seconds(4)) {
      reader.proceed(round.now)
      return reader.isCaughtUp
    }
    #expect(reader.failure == nil && reader.position == 10)
    // The reader has read for a while, so the next attempt follows at once.
    let calm = round.now + .seconds(5)
    try round.run("five seconds pass", within: .seconds(6)) {
      reader.proceed(round.now)
      return round.now >= calm
    }
    let restarts = reader.restarts
    round.server.sendStatus("409 Consumer Deleted")
    try round.run("the reader reads again", within: .milliseconds(900)) {
      reader.proceed(round.now)
      return reader.restarts > restarts && reader.isCaughtUp
    }
  }

  @Test func theLatestOfEachSubjectComesAgainWithANewConsumer() throws {
    let round = try LyingRound(seed: 1, messages: 9, lies: .none)
    round.start = .lastPerSubject
    round.server.log = (0..<6).map { HubMessage("s.\($0 % 3)", Array("old".utf8)) }
    try round.run("all are stored and read", within: .seconds(5)) {
      round.server.log.count == 15 && round.given.last?.sequence == 15
        && round.reader?.isCaughtUp == true
    }
    #expect(round.given.count <= 12)
    let count = round.given.count
    round.server.forgetConsumers()
    try round.run("the latest come again", within: .seconds(6)) { round.given.count == count + 3 }
    #expect(round.given.suffix(3).map(\.sequence) == [13, 14, 15])
    try round.finish()
  }

  @Test func aHalfOpenConnectionIsClosedAfterTwoPings() throws {
    let round = try Self.round()
    round.server.silence()
    let silent = round.now
    try round.run("the connection closes", within: .seconds(7)) { !round.closeReasons.isEmpty }
    #expect(round.closeReasons.map(\.kind) == [.timedOut])
    #expect(round.now - silent >= .seconds(2))
    Self.add(1, to: round)
    try round.run("a new connection reads", within: .seconds(5)) { round.isComplete }
    try round.finish()
  }

  /// The connection ends behind each byte, in the handshake, in lines, and in bodies.
  @Test func aCutBehindAnyByteLosesAndRepeatsNothing() throws {
    let whole = try LyingRound(seed: 1, messages: 5, lies: .none)
    try whole.run("five are read", within: .seconds(5)) { whole.isComplete }
    let count = whole.server.sentBytes
    #expect(count > 1000)
    let step = TestRun.isLong ? 1 : 11
    for cut in stride(from: Int(TestRun.seed % UInt64(step)), through: count, by: step) {
      let round = try LyingRound(seed: 1, messages: 5, lies: .none)
      round.server.cutAfter = cut
      try round.run("the connection is cut after \(cut)", within: .seconds(10)) {
        !round.closeReasons.isEmpty || round.isComplete
      }
      round.server.cutAfter = nil
      try round.run("five are read, cut \(cut)", within: .seconds(30)) { round.isComplete }
      try round.finish()
    }
  }
}
