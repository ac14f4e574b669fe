import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Requests whose outcome goes to a callback, and guests that reply.
@Suite(.blocking) struct InquiryTests {
  @Test func theyComeInTheOrderOfTheCalls() throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    let responding = pair.watch.respond(to: Int.self) { (number: Int) -> Int in
      heard.add(number)
      return number * 2
    }
    let hearing = pair.watch.receiveImmediate(kinds: ["told"]) {
      heard.add((try? $0.value()) ?? -1)
    }
    let ended = Heard<(Int, Int?)>()
    for number in 0..<1000 {
      if number % 10 == 9 {
        try pair.phone.sendImmediately(number, kind: "told", within: .seconds(600))
        continue
      }
      pair.phone.request(number, as: Int.self, within: .seconds(600)) { end in
        ended.add((number, try? end.get()))
      }
    }
    try ended.wait("all ends", within: patience * 4) { $0.count == 900 }
    try heard.wait("all") { $0.count == 1000 }
    #expect(heard.all == Array(0..<1000))
    #expect(ended.all.allSatisfy { $0.1 == 2 * $0.0 })
    #expect(Set(ended.all.map(\.0)).count == 900)
    responding.stop()
    hearing.stop()
  }

  /// Requests that arrived before the first responder are handled before later requests.
  @Test func theOrderIsKeptWhenSomebodyBeginsToAnswer() throws {
    let pair = try Pair { $0.youth = .seconds(3600) }
    let heard = Heard<Int>()
    var responding: Subscription?
    for number in 0..<600 {
      if number == 300 {
        responding = pair.watch.respond(to: Int.self) { (number: Int) -> Int in
          heard.add(number)
          return number
        }
      }
      pair.phone.request(number, as: Int.self, within: .seconds(600)) { _ in }
    }
    try heard.wait("all", within: patience * 4) { $0.count == 600 }
    #expect(heard.all == Array(0..<600))
    responding?.stop()
  }

  /// The order also holds between kinds, if a handler for all kinds is added in the middle of a
  /// batch.
  @Test func waitingRequestsPrecedeLaterOnes() throws {
    let pair = try Pair { $0.youth = .seconds(3600) }
    let (gate, heard, watch) = (Gate(), Heard<String>(), pair.watch)
    let all = Monitor<[Subscription]>([])
    let holding = watch.respond(toKind: "hold") { _ in gate.pass() }
    let beginning = watch.respond(toKind: "begin") { _ in
      let responding = watch.respond(toKind: nil) { heard.add($0.kind) }
      all.withLock { $0.append(responding) }
    }
    let answering = pair.sender.respond(to: Int.self) { $0 }
    func ask(_ kind: String) {
      pair.phone.request(0, as: Int.self, kind: kind, within: .seconds(600)) { _ in }
    }
    func lie(_ count: Int) throws {
      let folder = "members/watch/live/\(watch.incarnation)"
      try TestSupport.eventually("\(count) lie there") {
        try pair.meeting.names(folder).count == count
      }
    }
    ask("early")
    try TestSupport.eventually("it waits") { watch.unclaimed == 1 }
    ask("hold")
    try gate.waitForSomebody()
    ask("begin")
    try lie(1)
    ask("late")
    try lie(2)
    // A later request was replied to, so the earlier ones have been listed.
    #expect(try watch.peer("phone").request(7, as: Int.self) == 7)
    gate.open()
    try heard.wait("both") { $0.count == 2 }
    #expect(heard.all == ["early", "late"])
    for one in all.withLock({ $0 }) + [holding, beginning, answering] { one.stop() }
  }

  @Test func theLatestHandlerReplies() throws {
    let pair = try Pair()
    let first = pair.watch.respond(to: Int.self) { _ in 1 }
    let second = pair.watch.respond(to: Int.self) { _ in 2 }
    let other = pair.watch.respond(toKind: nil) { try? $0.reply(3) }
    #expect(try pair.phone.request(0, as: Int.self) == 2)
    second.stop()
    #expect(try pair.phone.request(0, as: Int.self) == 1)
    first.stop()
    #expect(try pair.phone.request(0, as: Int.self) == 3)
    other.stop()
  }

  @Test func aRequestWithoutReplyIsLogged() throws {
    let told = Heard<String>()
    let pair = try Pair { $0.log = { told.add($0.text) } }
    let responding = pair.watch.respond(toKind: nil) { _ in }
    pair.phone.request(1, as: Int.self, kind: "k", within: .seconds(600)) { _ in }
    try told.wait("the warning") { $0.contains { $0.hasSuffix("got no reply") } }
    responding.stop()
  }

  @Test func aSecondReplyIsIgnored() throws {
    let told = Heard<String>()
    let calls = Heard<[String]>()
    let pair = try Pair { $0.log = { told.add($0.text) } }
    let responding = pair.watch.respond(toKind: nil) { request in
      try? request.reply(1)
      calls.add(FaultPoints.with { try? request.reply(2) })
      request.refuse("no more")
    }
    #expect(try pair.phone.request(0, as: Int.self) == 1)
    try told.wait("both are told of") { $0.count == 2 }
    #expect(told.all.allSatisfy { $0.hasSuffix("has a reply already") })
    #expect(calls.all == [[]])
    responding.stop()
  }

  /// A slow answer is in nobody's way.
  @Test func answersComeAsTheyAreGiven() throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    let queue = DispatchQueue(label: "mine")
    let ended = Heard<Int?>()
    for number in 0..<3 {
      pair.phone.request(number, as: Int.self, within: .seconds(600), on: queue) { end in
        dispatchPrecondition(condition: .onQueue(queue))
        ended.add(try? end.get())
      }
    }
    try kept.wait("all") { $0.count == 3 }
    for (count, place) in [2, 0, 1].enumerated() {
      try kept.all[place].reply(place)
      try ended.wait("the answer") { $0.count == count + 1 }
    }
    #expect(ended.all == [2, 0, 1])
    responding.stop()
  }

  @Test func eachEndIsTold() throws {
    let clock = TestClock()
    let pair = try Pair { $0.clock = clock }
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: "keep") { kept.add($0) }
    let ended = Heard<WormholeError.Code?>()
    func ask(_ peer: Peer, _ kind: String, _ timeout: Duration) -> PendingRequest {
      peer.request(1, as: Int.self, kind: kind, within: timeout) { end in
        if case .failure(let error) = end { ended.add(error.code) } else { ended.add(nil) }
      }
    }
    let inquiry = ask(pair.phone, "keep", .seconds(600))
    try kept.wait("it") { $0.count == 1 }
    inquiry.cancel()
    inquiry.cancel()
    try ended.wait("the end") { $0 == [.cancelled] }
    _ = ask(pair.sender.peer("nobody"), "keep", .seconds(600))
    try ended.wait("the end") { $0.last == .unreachable }
    _ = ask(pair.phone, "keep", .seconds(60))
    try kept.wait("one that is not answered") { $0.count == 2 }
    clock.advance(by: .seconds(60))
    try ended.wait("the end") { $0.last == .timedOut }
    _ = ask(try pair.meeting.another().peer("watch"), "keep", .seconds(600))
    try kept.wait("that of one who has not joined") { $0.count == 3 }
    try kept.all[2].reply(1)
    try ended.wait("the answer") { $0.last == .some(nil) }
    _ = ask(pair.phone, "keep", .seconds(600))
    try kept.wait("the last") { $0.count == 4 }
    pair.watch.leave()
    try ended.wait("its end") { $0.count == 5 }
    #expect(ended.all == [.cancelled, .unreachable, .timedOut, nil, .unreachable])
    responding.stop()
  }

  /// WatchConnectivity distinguishes a lost reply from a counterpart that cannot be reached.
  @Test func anEndStatesWhetherTheRequestWasSeen() throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: "keep") { kept.add($0) }
    let ended = Heard<Bool>()
    let queue = DispatchQueue(label: "ends")
    func ask(_ peer: Peer) {
      peer.inquire(
        1, as: Int.self, kind: "keep", within: .seconds(600), on: queue
      ) { result, wasSeen in
        guard case .failure(let error) = result, error.code == .unreachable else { return }
        ended.add(wasSeen)
      }
    }
    ask(pair.sender.peer("nobody"))
    try ended.wait("the end without a receiver") { $0.count == 1 }
    ask(pair.phone)
    try kept.wait("the request") { $0.count == 1 }
    pair.watch.leave()
    try ended.wait("the end after the receiver has left") { $0.count == 2 }
    #expect(ended.all == [false, true])
    responding.stop()
  }

  /// Every request ends once, also a request that is never placed.
  @Test func aRequestThatCannotBeWrittenEnds() throws {
    struct Unwritable: Encodable {
      func encode(to encoder: any Encoder) throws { throw Missing() }
    }
    let pair = try Pair()
    let ended = Heard<WormholeError.Code?>()
    pair.phone.request(Unwritable(), as: Int.self, within: .seconds(600)) { end in
      if case .failure(let error) = end { ended.add(error.code) } else { ended.add(nil) }
    }
    try ended.wait("its end") { $0 == [.invalidValue] }
    // An access requests the presenters' replies in this way.
    let replies = Heard<Bool?>()
    pair.phone.request(
      Unwritable(), kind: "k", within: .seconds(600), ended: { replies.add($0) })
    try replies.wait("no reply") { $0 == [nil] }
  }

  /// The deadlines of later requests are checked after the first has passed.
  @Test func eachDeadlineEndsItsRequest() throws {
    let clock = TestClock()
    let pair = try Pair { $0.clock = clock }
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: "keep") { kept.add($0) }
    let ended = Heard<Int>()
    for number in 1...3 {
      pair.phone.request(
        number, as: Int.self, kind: "keep", within: .milliseconds(200 * Int64(number))
      ) { end in
        if case .failure(let error) = end, error.code == .timedOut { ended.add(number) }
      }
    }
    try kept.wait("all") { $0.count == 3 }
    for number in 1...3 {
      clock.advance(by: .milliseconds(200))
      #expect(throws: Never.self) {
        try ended.wait("the end of \(number)") { $0 == Array(1...number) }
      }
    }
    responding.stop()
  }

  // MARK: Guests that reply

  @Test func aGuestAnswersWhoKnowsItsAddress() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let responding = guest.respond(toKind: "Int") { request in
      try? request.reply((try? request.value(as: Int.self)).map { $0 * 2 } ?? 0)
    }
    let heard = Heard<String>()
    let hearing = guest.receiveImmediate { heard.add($0.kind) }
    let other = try meeting.another()
    let member = try other.join(as: "phone")
    let second = try other.guest()
    let peers = [
      member.peer(guest: guest.address), second.peer(guest: guest.address),
      other.peer(guest: guest.address),
    ]
    for peer in peers {
      for number in 1...3 {
        #expect(try peer.request(number, as: Int.self) == 2 * number)
      }
      try peer.sendImmediately("now", kind: "told")
    }
    try heard.wait("all three") { $0 == ["told", "told", "told"] }
    // A member with a guest's address as its name is not the guest.
    #expect(
      try failure { _ = try member.peer(guest.address).request(1, as: Int.self) }.code
        == .unreachable)
    responding.stop()
    hearing.stop()
    guest.leave()
    for peer in peers {
      #expect(try failure { _ = try peer.request(1, as: Int.self) }.code == .unreachable)
    }
    member.leave()
    second.leave()
  }

  @Test func theEndOfAGuestIsTold() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let kept = Heard<Request>()
    let responding = guest.respond(toKind: nil) { kept.add($0) }
    let ended = Heard<WormholeError.Code?>()
    let member = try meeting.another().join(as: "phone")
    member.peer(guest: guest.address).request(1, as: Int.self, within: .seconds(600)) { end in
      if case .failure(let error) = end { ended.add(error.code) } else { ended.add(nil) }
    }
    try kept.wait("it is asked") { $0.count == 1 }
    guest.leave()
    try ended.wait("its end") { $0 == [.unreachable] }
    responding.stop()
    member.leave()
  }
}
