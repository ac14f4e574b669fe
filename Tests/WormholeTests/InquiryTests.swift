import Foundation
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Questions whose end a closure is told of, and guests that answer.
@Suite(.blocking) struct InquiryTests {
  @Test func theyComeInTheOrderOfTheCalls() throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    let responding = pair.watch.respond(to: Int.self) { (number: Int) -> Int in
      heard.add(number)
      return number * 2
    }
    let hearing = pair.watch.watchImmediate(kinds: ["told"]) { heard.add((try? $0.value()) ?? -1) }
    let ended = Heard<(Int, Int?)>()
    for number in 0..<1000 {
      if number % 10 == 9 {
        try pair.phone.send(number, .immediate, kind: "told", within: .seconds(600))
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

  /// What came before anybody wanted it goes before what has come since.
  @Test func theOrderIsKeptWhenSomebodyBeginsToAnswer() throws {
    let pair = try Pair { $0.youth = .seconds(3600) }
    let heard = Heard<Int>()
    var responding: Wormhole.Subscription?
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

  /// A slow answer is in nobody's way.
  @Test func answersComeAsTheyAreGiven() throws {
    let pair = try Pair()
    let kept = Heard<Wormhole.Request>()
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
      try kept.all[place].answer(place)
      try ended.wait("the answer") { $0.count == count + 1 }
    }
    #expect(ended.all == [2, 0, 1])
    responding.stop()
  }

  @Test func eachEndIsTold() throws {
    let pair = try Pair()
    let kept = Heard<Wormhole.Request>()
    let responding = pair.watch.respond(toKind: "keep") { kept.add($0) }
    let ended = Heard<WormholeError.Code?>()
    func ask(_ peer: Wormhole.Peer, _ kind: String, _ timeout: Duration) -> Wormhole.Inquiry {
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
    // Long enough for whoever answers to see it.
    _ = ask(pair.phone, "keep", patience / 30)
    try kept.wait("one that is not answered") { $0.count == 2 }
    try ended.wait("the end") { $0.last == .timedOut }
    _ = ask(try pair.meeting.another().peer("watch"), "keep", .seconds(600))
    try kept.wait("that of one who has not joined") { $0.count == 3 }
    try kept.all[2].answer(1)
    try ended.wait("the answer") { $0.last == .some(nil) }
    _ = ask(pair.phone, "keep", .seconds(600))
    try kept.wait("the last") { $0.count == 4 }
    pair.watch.leave()
    try ended.wait("its end") { $0.count == 5 }
    #expect(ended.all == [.cancelled, .unreachable, .timedOut, nil, .unreachable])
    responding.stop()
  }

  // MARK: Guests that answer

  @Test func aGuestAnswersWhoKnowsItsAddress() throws {
    let meeting = try Meeting()
    let guest = try meeting.hole.guest()
    let responding = guest.respond(toKind: "Int") { request in
      try? request.answer((try? request.value(as: Int.self)).map { $0 * 2 } ?? 0)
    }
    let heard = Heard<String>()
    let hearing = guest.watchImmediate { heard.add($0.kind) }
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
      try peer.send("now", .immediate, kind: "told")
    }
    try heard.wait("all three") { $0 == ["told", "told", "told"] }
    // A member of such a name is another one.
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
    let guest = try meeting.hole.guest()
    let kept = Heard<Wormhole.Request>()
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
