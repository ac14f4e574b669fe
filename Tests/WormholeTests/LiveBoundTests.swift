import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Immediate messages that wait: never past their deadline, and never without limit.
@Suite(.blocking) struct LiveBoundTests {
  /// Data of ten thousand bytes; ten such values fill the space for waiting messages.
  private let large = String(repeating: "x", count: 10_000)

  private func pair(youth: Duration = .zero) throws -> Pair {
    try Pair { options in
      options.youth = youth
      options.maximumValueBytes = 100_000
    }
  }

  /// Waits until all earlier messages have been handled, or added to their queues.
  private func settle(_ pair: Pair) throws {
    let responding = pair.watch.respond(toKind: "settle") { try? $0.reply(1) }
    #expect(
      try pair.phone.request(0, as: Int.self, kind: "settle", within: .seconds(60)) == 1)
    responding.stop()
  }

  private func lying(_ pair: Pair) throws -> Int {
    try Descriptor.open(
      path: "\(pair.meeting.path)/members/watch/live/\(pair.watch.incarnation)",
      [.readOnly, .directory]
    ).names().count
  }

  // MARK: A queue

  @Test func nothingIsHandedOverByAQueueAfterItsDeadline() throws {
    let pair = try pair()
    let queue = DispatchQueue(label: "busy")
    let heard = Heard<String>()
    let all = [
      pair.watch.receiveImmediate(on: queue) { heard.add($0.kind) },
      pair.watch.respond(toKind: "Int", on: queue) { request in
        heard.add("request")
        try? request.reply(1)
      },
    ]
    queue.suspend()
    try pair.phone.sendImmediately("late", kind: "late", within: .milliseconds(100))
    try pair.phone.sendImmediately("in time", kind: "in time", within: .seconds(600))
    let error = try failure {
      _ = try pair.phone.request(1, as: Int.self, within: .milliseconds(100))
    }
    #expect(error.code == .timedOut)
    queue.resume()
    try heard.wait("what is in time") { !$0.isEmpty }
    queue.sync {}
    #expect(heard.all == ["in time"])
    for one in all { one.stop() }
  }

  /// A requester does not wait for the reply of a stopped responder.
  @Test func whatWaitsForOneThatIsStoppedIsRefused() throws {
    let pair = try pair()
    let queue = DispatchQueue(label: "busy")
    let responding = pair.watch.respond(toKind: "Int", on: queue) { try? $0.reply(1) }
    queue.suspend()
    let ends = Heard<WormholeError.Code?>()
    pair.phone.request(1, as: Int.self, within: .seconds(600)) { end in
      if case .failure(let error) = end { ends.add(error.code) } else { ends.add(nil) }
    }
    try settle(pair)
    responding.stop()
    queue.resume()
    try ends.wait("it ends") { !$0.isEmpty }
    #expect(ends.all == [.rejected])
  }

  @Test func whatWaitsForAQueueIsBounded() throws {
    let pair = try Pair()
    let queue = DispatchQueue(label: "busy")
    let heard = Heard<Int>()
    let all = [
      pair.watch.receiveImmediate(kinds: ["Int"], on: queue) { heard.add((try? $0.value()) ?? 0) },
      pair.watch.respond(toKind: "ask", on: queue) { try? $0.reply("done") },
    ]
    queue.suspend()
    for number in 1...1100 {
      try pair.phone.sendImmediately(number, within: .seconds(600))
    }
    try settle(pair)
    let asked = Heard<String>()
    for number in 1...1001 {
      pair.phone.request(number, as: String.self, kind: "ask", within: .seconds(600)) { end in
        if case .failure(let error) = end { asked.add(error.reason) }
      }
    }
    // The request beyond the limit is refused at once.
    try asked.wait("the refusal") { $0 == ["too many requests wait for the queue of the handler"] }
    queue.resume()
    try heard.wait("the thousand") { $0.count == 1000 }
    queue.sync {}
    #expect(heard.all == Array(1...1000))
    for one in all { one.stop() }
  }

  @Test func requestsWaitingForAQueueAreLimitedByBytes() throws {
    let pair = try pair()
    let queue = DispatchQueue(label: "busy")
    let responding = pair.watch.respond(toKind: "String", on: queue) { try? $0.reply("done") }
    queue.suspend()
    let ends = Heard<String>()
    for _ in 1...12 {
      pair.phone.request(large, as: String.self, within: .seconds(600)) { end in
        switch end {
        case .success(let answer): ends.add(answer)
        case .failure(let error): ends.add(error.reason)
        }
      }
      // The directory has no more room either.
      try settle(pair)
    }
    let refused = Array(
      repeating: "too many requests wait for the queue of the handler", count: 3)
    #expect(throws: Never.self) {
      try ends.wait("those for which there is no room") { $0.count >= 3 }
    }
    #expect(ends.all == refused)
    queue.resume()
    try ends.wait("the others") { $0.count == 12 }
    #expect(ends.all == refused + Array(repeating: "done", count: 9))
    responding.stop()
  }

  @Test func whatIsTooLateMakesRoomOnAQueue() throws {
    let pair = try pair()
    let queue = DispatchQueue(label: "busy")
    let heard = Heard<Int>()
    let hearing = pair.watch.receiveImmediate(on: queue) { message in
      heard.add((try? message.value(as: String.self))?.utf8.count ?? 0)
    }
    queue.suspend()
    for _ in 0..<9 { try pair.phone.sendImmediately(large, within: .milliseconds(300)) }
    let begin = Instant.now
    try settle(pair)
    try eventually("they are too late") { Instant.now - begin > .milliseconds(300) }
    // If the late messages remained, there would be no space for this message.
    try pair.phone.sendImmediately(large + large, within: .seconds(600))
    try settle(pair)
    queue.resume()
    #expect(throws: Never.self) { try heard.wait("the last") { $0 == [20_000] } }
    hearing.stop()
  }

  /// New items that take the place of late ones are limited by bytes as well.
  ///
  /// The queue still has the turns of the late items, so the new ones need no turns of their own.
  @Test func theBytesAfterLateItemsAreLimited() throws {
    let (queue, record) = (DispatchQueue(label: "busy"), MadeRequest())
    let heard = Heard<String>()
    // Two of the items fit.
    let calls = LiveCalls<Request>(on: queue, mostBytes: 25_000) { heard.add($0.kind) }
    func add(_ kind: String, within time: Duration) throws -> Bool {
      let one = try Request(
        made: large, from: nil, kind: kind, headers: [:], timeLeft: time, record)
      return calls.add(one, one.core)
    }
    queue.suspend()
    for number in 1...2 { #expect(try add("late \(number)", within: .zero)) }
    for number in 1...2 { #expect(try add("new \(number)", within: .seconds(600))) }
    #expect(try !add("one too many", within: .seconds(600)))
    queue.resume()
    queue.sync {}
    #expect(heard.all == ["new 1", "new 2"])
  }

  /// The first of two handlers takes longer than the message's time.
  @Test func noFurtherHandlerIsCalledAfterTheDeadline() throws {
    let pair = try pair()
    let heard = Heard<Int>()
    let all = (1...2).map { number in
      pair.watch.receiveImmediate(kinds: ["slow"]) { _ in
        heard.add(number)
        // The message was sent before this call.
        let begin = Instant.now
        try? eventually("it is late") { Instant.now - begin > .seconds(2) }
      }
    }
    try pair.phone.sendImmediately(0, kind: "slow", within: .seconds(1))
    try settle(pair)
    // On a busy machine, the message may be late for both.
    #expect(heard.count <= 1)
    for one in all { one.stop() }
  }

  // MARK: The disk

  /// Blocks the member: a member whose handler does not return does not read.
  private func stuck(_ pair: Pair) throws -> (go: @Sendable () -> Void, [Subscription]) {
    let (block, isBlocked) = (Monitor(false), Monitor(false))
    let blocking = pair.watch.receiveImmediate(kinds: ["block"]) { _ in
      isBlocked.signal { $0 = true }
      _ = block.wait(until: nil) { $0 ? true : nil }
    }
    try pair.phone.sendImmediately(0, kind: "block", within: .seconds(60))
    _ = isBlocked.wait(until: nil) { $0 ? true : nil }
    return ({ block.signal { $0 = true } }, [blocking])
  }

  @Test func whatLiesThereIsBounded() throws {
    let pair = try pair()
    let (go, all) = try stuck(pair)
    let stranger = try pair.meeting.another { $0.maximumValueBytes = 100_000 }.peer("watch")
    var sent = 0
    let error = try failure {
      for _ in 0..<50 {
        // The two senders do not know of each other.
        try (sent % 2 == 0 ? pair.phone : stranger).sendImmediately(
          large, within: .seconds(600))
        sent += 1
      }
    }
    #expect(error.code == .full)
    #expect(error.reason == "the directory for immediate messages is full of unread messages")
    #expect((8...10).contains(sent), "\(sent)")
    #expect(try failure { _ = try pair.phone.request(large, as: Int.self) }.code == .full)
    go()
    try eventually("it is read") { try lying(pair) == 0 }
    try pair.phone.sendImmediately(large)
    for one in all { one.stop() }
  }

  /// The limit counts files of any size.
  @Test func theNumberOfLiveFilesIsLimited() throws {
    let pair = try pair()
    let (go, all) = try stuck(pair)
    let folder = try Descriptor.open(
      path: "\(pair.meeting.path)/members/watch/live/\(pair.watch.incarnation)",
      [.readOnly, .directory])
    func name(_ number: Int) -> String {
      let digits = String(number, radix: 16)
      let id = String(repeating: "0", count: 16 - digits.count) + digits
      return "00000000000000000000,m,\(id),7000000000000000"
    }
    for number in 1...10_000 {
      _ = try folder.open(name(number), [.writeOnly, .create, .exclusive], mode: 0o600)
    }
    // A sender that has not counted before.
    func send() throws {
      try pair.meeting.another().peer("watch").sendImmediately(1, within: .seconds(600))
    }
    #expect(try failure { try send() }.code == .full)
    try folder.unlink(name(1))
    try send()
    #expect(try failure { try send() }.code == .full)
    for number in 2...10_000 { try folder.unlink(name(number)) }
    go()
    for one in all { one.stop() }
  }

  /// A requester has no more replies than requests, and takes them while a handler is busy.
  @Test func repliesTakeNoSpaceOfOtherMessages() throws {
    let folder = try TemporaryDirectory()
    let place = OpenDirectory(try Descriptor.open(path: folder.path, [.readOnly, .directory]))
    func add(_ letter: LiveName.Letter, _ number: Int) throws {
      let deadline: Int64? = letter.isAnswer ? nil : Int64.max
      let name = LiveName(
        MessageStamp(epoch: 1, nanoseconds: Int64(number)), letter,
        id: "000000000000000\(number)", deadline: deadline)
      try folder.write(large, to: name.text)
    }
    func room() throws -> LiveCapacity? {
      try LiveCapacity(counting: place, for: 10_000, mostBytes: 25_000, now: 0)
    }
    for number in 1...5 { try add(.answer, number) }
    #expect(try room()?.bytes == 15_000 / 32)
    #expect(try room()?.files == LiveCapacity.mostFiles / 32)
    try add(.question, 6)
    #expect(try room()?.bytes == 5000 / 32)
    #expect(try room()?.files == (LiveCapacity.mostFiles - 1) / 32)
    try add(.message, 7)
    let full = try room()
    #expect(full == nil)
  }

  @Test func aCancelledRequestIsRemoved() throws {
    let pair = try pair()
    let (go, all) = try stuck(pair)
    let ended = Heard<WormholeError.Code?>()
    let inquiry = pair.phone.request(1, as: Int.self, within: .seconds(600)) { end in
      if case .failure(let error) = end { ended.add(error.code) } else { ended.add(nil) }
    }
    try eventually("it lies there") { try lying(pair) == 1 }
    inquiry.cancel()
    try ended.wait("its end") { $0 == [.cancelled] }
    try eventually("nothing lies there") { try lying(pair) == 0 }
    go()
    for one in all { one.stop() }
  }

  @Test func whatIsTooLateMakesRoomOnTheDisk() throws {
    let pair = try pair()
    let (go, all) = try stuck(pair)
    var sent = 0
    try eventually("a hundred have been sent") {
      do throws(WormholeError) {
        try pair.phone.sendImmediately(large, within: .milliseconds(1))
        sent += 1
      } catch {
        guard error.code == .full else { throw error }
      }
      return sent == 100
    }
    #expect(try lying(pair) <= 10)
    go()
    for one in all { one.stop() }
  }

  @Test func whatNobodyWantsYetIsBounded() throws {
    let pair = try pair(youth: .seconds(3600))
    for _ in 0..<20 {
      try eventually("there is room") {
        do throws(WormholeError) {
          try pair.phone.sendImmediately(large, within: .seconds(600))
          return true
        } catch {
          guard error.code == .full else { throw error }
          return false
        }
      }
    }
    try settle(pair)
    #expect(pair.watch.unclaimed == 9)
  }

  @Test func theNumberOfEarlyMessagesIsLimited() throws {
    let pair = try Pair { $0.youth = .seconds(3600) }
    for number in 1...1010 { try pair.phone.sendImmediately(number, within: .seconds(600)) }
    try settle(pair)
    #expect(pair.watch.unclaimed == 1000)
    let heard = Heard<Int>()
    let watching = pair.watch.receiveImmediate { heard.add((try? $0.value()) ?? -1) }
    try heard.wait("those") { $0.count == 1000 }
    #expect(heard.all == Array(1...1000))
    watching.stop()
  }

  // MARK: The dead

  @Test func whatADeadAskerAskedIsNotInTheWayOfTheLiving() throws {
    let pair = try pair()
    let (go, all) = try stuck(pair)
    let heard = Heard<String?>()
    let responding = pair.watch.respond(toKind: nil) { request in
      heard.add(request.from)
      try? request.reply(42)
    }
    let asker = try Running(
      .request(pair.meeting.path, of: "watch", 21...21, as: "dead", milliseconds: 60_000))
    try eventually("it has asked") { try lying(pair) == 1 }
    try asker.child.send(.kill)
    _ = try asker.outcome()
    let begin = Instant.now
    try eventually("it has waited") { Instant.now - begin > .milliseconds(20) }
    let answered = Heard<Int>()
    pair.phone.request(1, as: Int.self, within: .seconds(600)) {
      answered.add((try? $0.get()) ?? 0)
    }
    go()
    try answered.wait("the answer") { $0 == [42] }
    #expect(heard.all == ["phone"])
    responding.stop()
    for one in all { one.stop() }
  }

  // MARK: Known peers

  @Test func fewPeersAreKnown() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let others = try meeting.another()
    for number in 0..<200 {
      let member = try others.join(as: "m\(number)")
      let responding = member.respond(to: Int.self) { $0 }
      let peer = guest.peer("m\(number)")
      #expect(try peer.request(number, as: Int.self, within: .seconds(60)) == number)
      #expect(guest.live.peers.count <= LivePeers.most + 1)
      responding.stop()
      if number % 2 == 0 { member.leave() }
    }
    guest.leave()
  }

  /// However many peers are known, no peer with a pending request is forgotten.
  @Test func theEndOfEachOfManyIsTold() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let others = try meeting.another()
    let members = try (0..<150).map { try others.join(as: "m\($0)") }
    let kept = Heard<Request>()
    let all = members.map { $0.respond(toKind: nil) { kept.add($0) } }
    let ended = Heard<WormholeError.Code?>()
    for member in members {
      guest.peer(member.name).request(1, as: Int.self, within: .seconds(600)) { end in
        if case .failure(let error) = end { ended.add(error.code) } else { ended.add(nil) }
      }
    }
    try kept.wait("all have been asked") { $0.count == 150 }
    for member in members { member.leave() }
    try ended.wait("all ends") { $0.count == 150 }
    #expect(ended.all.allSatisfy { $0 == .unreachable })
    for one in all { one.stop() }
    guest.leave()
  }
}
