import TestSupport
import TestTraits
import Testing
import Wormhole

/// The limit of a message's size, which is a limit of each message and not of a whole call.
@Suite(.blocking) struct BatchLimitTests {
  private let pair: Pair

  init() throws { pair = try Pair { $0.maximumValueBytes = 4000 } }

  /// Each message is within the limit, and a file with all of them would not be.
  @Test func aBatchAboveTheLimitIsSplit() throws {
    let texts = (1...5).map { "\($0)" + String(repeating: "x", count: 3000) }
    let sent = try pair.phone.send(contentsOf: texts, .quick())
    #expect(sent.map(\.count) == [1, 1, 1, 1, 1])
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == 5 }
    receiving.stop()
    #expect(heard.all == texts)
  }

  /// All four would be too many, and two are not.
  @Test func aBatchAboveTheLimitIsSplitIntoTheFewestFiles() throws {
    let texts = (1...4).map { "\($0)" + String(repeating: "x", count: 1500) }
    #expect(try pair.phone.send(contentsOf: texts, .quick()).map(\.count) == [2, 2])
  }

  @Test func smallMessagesBehindALargeOneShareFilesAgain() throws {
    let large = String(repeating: "x", count: 3000)
    let texts = [large, large] + (1...10).map { "\($0)" }
    let sent = try pair.phone.send(contentsOf: texts, .quick())
    #expect(sent.map(\.count) == [1, 2, 4, 5])
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == texts.count }
    receiving.stop()
    #expect(heard.all == texts)
  }

  /// The number of objects is limited too.
  @Test func aBatchOfTooManyObjectsIsSplit() throws {
    let lists = (0..<2).map { list in (0..<600_000).map { 1_000_000 * list + $0 } }
    let pair = try Pair()
    #expect(try pair.phone.send(contentsOf: lists, .quick()).map(\.count) == [1, 1])
  }

  @Test func aMessageAboveTheLimitLeavesNothing() throws {
    let large = String(repeating: "x", count: 4000)
    #expect(try failure { try pair.phone.send(large, .quick()) }.code == .tooLarge)
    #expect(
      try failure { try pair.phone.send(contentsOf: ["a", large], .quick()) }.code == .tooLarge)
    #expect(try failure { try pair.phone.sendImmediately(large) }.code == .tooLarge)
    #expect(
      try failure { _ = try pair.phone.request(large, as: Int.self) }.code == .tooLarge)
    #expect((try? pair.files("inbox")) ?? [] == [])
    #expect(try pair.meeting.names("staging") == [])
    let live = "members/watch/live/\(pair.watch.incarnation)"
    #expect(try pair.meeting.names(live) == [])
    #expect(try pair.phone.pendingMessages.isEmpty)
  }
}
