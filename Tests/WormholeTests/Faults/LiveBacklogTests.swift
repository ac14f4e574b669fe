import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Immediate messages that arrive faster than the task of their handler takes them.
@Suite(.blocking) struct LiveBacklogTests {
  /// A late message gives its space to a new one, and the log reports it.
  @Test func aLateMessageThatMakesRoomOnAQueueIsDroppedAloud() throws {
    let entries = Heard<LogEntry>()
    let pair = try Pair { options in
      options.youth = .zero
      options.maximumValueBytes = 100_000
      options.log = { entries.add($0) }
    }
    let (queue, heard) = (DispatchQueue(label: "busy"), Heard<Int>())
    let page = String(repeating: "x", count: 60_000)
    let hearing = pair.watch.receiveImmediate(kinds: ["page"], on: queue) { message in
      heard.add((try? message.value(as: String.self).utf8.count) ?? 0)
    }
    let settling = pair.watch.respond(toKind: "settle") { try? $0.reply(1) }
    func settle() throws {
      let reply = try pair.phone.request(
        0, as: Int.self, kind: "settle", within: .seconds(60))
      #expect(reply == 1)
    }
    queue.suspend()
    try pair.phone.sendImmediately(page, kind: "page", within: .milliseconds(100))
    let late = Instant.now + .milliseconds(100)
    try settle()
    try eventually("the first is late") { Instant.now > late + .milliseconds(1) }
    try pair.phone.sendImmediately(
      String(page.dropLast(10_000)), kind: "page", within: .seconds(600))
    try settle()
    let dropped = entries.all.filter { $0.text.hasSuffix("its deadline has passed") }
    #expect(dropped.count == 1 && dropped.first?.level == .info)
    queue.resume()
    try heard.wait("the second") { $0 == [50_000] }
    hearing.stop()
    settling.stop()
  }

  /// One is in hand and few wait; the rest is dropped, each with a log entry, and none is lost
  /// silently.
  @Test func whatTheTaskOfTheHandlerHasNoRoomForIsDroppedAloud() throws {
    let entries = Heard<LogEntry>()
    let pair = try Pair { options in
      options.youth = .zero
      options.maximumValueBytes = 100_000
      options.log = { entries.add($0) }
    }
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let heard = Heard<Int>()
    let hearing = pair.watch.receiveImmediate(kinds: ["page"]) { message async in
      for await _ in gate {}
      heard.add((try? message.value(as: String.self).utf8.count) ?? 0)
    }
    let settling = pair.watch.respond(toKind: "settle") { try? $0.reply(1) }
    let page = String(repeating: "x", count: 10_000)
    for _ in 1...15 {
      try pair.phone.sendImmediately(page, kind: "page", within: .seconds(600))
      // The reply follows the message: the receiver has read it, and its directory is empty.
      let reply = try pair.phone.request(
        0, as: Int.self, kind: "settle", within: .seconds(60))
      #expect(reply == 1)
    }
    let dropped = entries.all.filter { $0.text.hasPrefix("dropped an immediate message") }
    #expect((5...7).contains(dropped.count), "\(dropped.count)")
    let entry = try #require(dropped.first)
    #expect(entry.level == .warning && entry.member == "watch")
    #expect(
      entry.text
        == "dropped an immediate message of kind 'page': too many messages wait for the task of "
        + "the handler")
    opener.finish()
    try heard.wait("all that were taken") { $0.count + dropped.count == 15 }
    #expect(heard.all.allSatisfy { $0 == 10_000 })
    // There is space again.
    try pair.phone.sendImmediately("short", kind: "page", within: .seconds(600))
    try heard.wait("the last") { $0.last == 5 }
    #expect(heard.count + dropped.count == 16)
    hearing.stop()
    settling.stop()
  }
}
