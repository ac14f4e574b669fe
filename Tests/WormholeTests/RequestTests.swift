import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Requests and immediate messages within one process: two members of one container.
@Suite struct RequestTests {
  /// Tasks wait for other tests, which occupy all threads of the pool; the calls here are quicker.
  private let long = Duration.seconds(300)

  @Test func isAnswered() async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: Int.self) { $0 * 2 }
    for number in 1...20 {
      #expect(try await pair.phone.request(number, as: Int.self, within: long) == number * 2)
    }
    responding.stop()
  }

  /// Only a request that no handler has seen is sent again after a start.
  @Test func aRefusedRequestIsNotSentAgain() async throws {
    let (pair, seen) = (try Pair(), Heard<Int>())
    let responding = pair.watch.respond(toKind: "Int") { request in
      seen.add(1)
      request.refuse("no")
    }
    await #expect(throws: WormholeError.self) {
      _ = try await pair.phone.request(1, as: Int.self, within: long, waking: true)
    }
    #expect(seen.all == [1])
    responding.stop()
  }

  @Test func isAnsweredByTasks() async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: String.self) { (text: String) async -> String in
      await Task.yield()
      return text + "!"
    }
    #expect(try await pair.phone.request("hello", as: String.self, within: long) == "hello!")
    responding.stop()
  }

  @Test func typedQuestionKnowsItsAnswer() async throws {
    struct Price: RequestValue {
      typealias Reply = Double
      let film: String
    }
    let pair = try Pair()
    let responding = pair.watch.respond(to: Price.self) { $0.film == "Metropolis" ? 9.5 : 0 }
    #expect(try await pair.phone.request(Price(film: "Metropolis"), within: long) == 9.5)
    responding.stop()
  }

  /// When the latest responder of a kind is stopped, the one before it replies again.
  @Test func theLatestResponderOfAKindReplies() async throws {
    let pair = try Pair()
    let all = (1...3).map { number in pair.watch.respond(to: Int.self) { (_: Int) in number } }
    for number in [3, 2, 1] {
      #expect(try await pair.phone.request(0, as: Int.self, within: long) == number)
      all[number - 1].stop()
    }
  }

  @Test func handlerMayAnswerLater() async throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    async let answer = pair.phone.request(1, as: Int.self, within: long)
    try await kept.comes("the request") { $0.count == 1 }
    try kept.all[0].reply(2)
    try kept.all[0].reply(3)  // A logged no-op.
    #expect(try await answer == 2)
    responding.stop()
  }

  @Test func whatTheHandlerThrowsIsToldToTheAsker() async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: Int.self) { (_: Int) throws -> Int in throw Refusal() }
    let error = await #expect(throws: WormholeError.self) {
      try await pair.phone.request(1, as: Int.self, within: long)
    }
    #expect(error?.code == .rejected)
    #expect(error?.reason == "Refusal()")
    responding.stop()
  }

  @Test func nobodyAnswersSuchRequests() async throws {
    let pair = try Pair()
    let error = await #expect(throws: WormholeError.self) {
      try await pair.phone.request(1, as: Int.self, within: long)
    }
    #expect(error?.code == .rejected)
  }

  /// A process that has woken a member sends its request at once, perhaps before the member has
  /// registered its responders.
  @Test func whatComesRightAfterJoiningWaitsForThoseWhoWantIt() async throws {
    let pair = try Pair { $0.youth = .seconds(3600) }
    let heard = Heard<String>()
    let long = Duration.seconds(120)
    let answer = Task {
      try await pair.phone.request(2, as: Int.self, within: long)
    }
    let refused = Task {
      try await pair.phone.request("what", as: Int.self, within: long)
    }
    try await pair.phone.sendImmediately("now", within: long)
    try await eventuallyAsync("all three wait") { pair.watch.unclaimed == 3 }
    let responding = pair.watch.respond(to: Int.self) { $0 * 2 }
    let watching = pair.watch.receiveImmediate { heard.add((try? $0.value()) ?? "damaged") }
    #expect(try await answer.value == 4)
    try await heard.comes("the message") { $0 == ["now"] }
    // While a new handler is offered those that wait, they are not counted.
    try await eventuallyAsync("the other request waits still") { pair.watch.unclaimed == 1 }
    refused.cancel()
    responding.stop()
    watching.stop()
  }

  @Test func whatNobodyWantsIsRefusedInTheEnd() async throws {
    let pair = try Pair { $0.youth = .milliseconds(50) }
    let error = await #expect(throws: WormholeError.self) {
      try await pair.phone.request(1, as: Int.self, within: .seconds(60))
    }
    #expect(error?.code == .rejected)
    #expect(pair.watch.unclaimed == 0)
  }

  @Test func nobodyIsThere() async throws {
    let pair = try Pair()
    for (name, word) in [("nobody", "nobody"), ("gone", "gone"), ("my tv", "'my tv'")] {
      if name == "gone" { try await pair.meeting.another().join(as: "gone").leave() }
      let error = await #expect(throws: WormholeError.self) {
        try await pair.sender.peer(name).request(1, as: Int.self, within: long)
      }
      #expect(error?.code == .unreachable)
      #expect(error?.hint?.contains("'wormhole wake \(word)'") == true)
    }
  }

  @Test func neverAnsweredIsATimeout() async throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    // On a busy machine, a request may be withdrawn before the responder reads it.
    repeat {
      let error = await #expect(throws: WormholeError.self) {
        try await pair.phone.request(1, as: Int.self, within: .milliseconds(50))
      }
      #expect(error?.code == .timedOut)
    } while kept.count == 0
    // A late reply is dropped, and has no effect on later requests.
    try kept.all[0].reply(2)
    responding.stop()
    let answering = pair.watch.respond(to: Int.self) { $0 }
    #expect(try await pair.phone.request(7, as: Int.self, within: long) == 7)
    answering.stop()
  }

  @Test func peerThatLeavesIsNotWaitedFor() async throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    let asking = Task { try await pair.phone.request(1, as: Int.self, within: long) }
    try await kept.comes("the request") { $0.count == 1 }
    await pair.watch.leave()
    let error = await #expect(throws: WormholeError.self) { try await asking.value }
    #expect(error?.code == .unreachable)
    responding.stop()
  }

  @Test func cancelledTaskTakesItsQuestionBack() async throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let responding = pair.watch.respond(toKind: nil) { kept.add($0) }
    let asking = Task { try await pair.phone.request(1, as: Int.self, within: long) }
    try await kept.comes("the request") { $0.count == 1 }
    asking.cancel()
    let error = await #expect(throws: WormholeError.self) { try await asking.value }
    #expect(error?.code == .cancelled)
    responding.stop()
  }

  @Test func guestMayAsk() async throws {
    let (pair, senders) = (try Pair(), Heard<String?>())
    let responding = pair.watch.respond(toKind: nil) { request in
      senders.add(request.from)
      try? request.reply("yes")
    }
    let container = try pair.meeting.another()
    #expect(try await container.peer("watch").request("?", as: String.self, within: long) == "yes")
    #expect(try await container.peer("watch").request("?", as: String.self, within: long) == "yes")
    let guest = try await container.guest()
    #expect(try await guest.peer("watch").request("?", as: String.self, within: long) == "yes")
    await guest.leave()
    responding.stop()
    #expect(senders.all == [nil, nil, nil])
  }

  @Test(.blocking) func immediateMessageIsHeard() throws {
    let pair = try Pair()
    let (heard, senders) = (Heard<Int>(), Heard<String?>())
    let watching = pair.watch.receiveImmediate { message in
      senders.add(message.from)
      heard.add((try? message.value()) ?? -1)
    }
    for number in 1...20 { try pair.phone.sendImmediately(number) }
    try heard.wait("twenty") { $0 == Array(1...20) }
    watching.stop()
    #expect(Set(senders.all) == ["phone"])
    let error = try failure { try pair.sender.peer("nobody").sendImmediately(1) }
    #expect(error.code == .unreachable)
  }

  @Test func handlerMayAskInTurn() async throws {
    let pair = try Pair()
    let other = try await pair.meeting.another().join(as: "clock")
    let clock = other.respond(to: Int.self) { $0 + 1 }
    let back = pair.watch.peer("clock")
    // Synchronously, on the thread that handles requests: the reply must not wait for this thread.
    let responding = pair.watch.respond(to: String.self) { (text: String) throws -> Int in
      try back.request(text.count, as: Int.self, within: .seconds(20))
    }
    #expect(try await pair.phone.request("abc", as: Int.self, within: long) == 4)
    responding.stop()
    clock.stop()
  }

  @Test func manyAskAtOnce() async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: Int.self) { $0 * 3 }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          try await pair.phone.request(number, as: Int.self, within: long) == number * 3
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
    responding.stop()
  }

  @Test func nothingIsLeftBehind() async throws {
    let pair = try Pair()
    let responding = pair.watch.respond(to: Int.self) { $0 }
    _ = try await pair.phone.request(1, as: Int.self, within: long)
    responding.stop()
    for name in ["watch", "phone"] {
      let member = name == "watch" ? pair.watch : pair.sender
      let folder = "\(pair.meeting.path)/members/\(name)/live/\(member.incarnation)"
      try await eventuallyAsync("nothing in \(folder)") {
        try Descriptor.open(path: folder, [.readOnly, .directory]).names().isEmpty
      }
      await member.leave()
      #expect(
        try Descriptor.open(path: "\(pair.meeting.path)/members/\(name)/live", [.readOnly])
          .names().isEmpty)
    }
  }
}
