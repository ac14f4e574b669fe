import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Guaranteed messages within one process: two members of one container.
@Suite struct MessageTests {
  @Test(.blocking) func arrivesInOrder() throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    for number in 1...50 { try pair.phone.send(number) }
    try heard.wait("fifty") { $0.count == 50 }
    #expect(heard.all == Array(1...50))
    receiving.stop()
  }

  @Test(.blocking) func arrivesWhenNobodyReceivedAtFirst() throws {
    let pair = try Pair()
    try pair.phone.send(Order(film: "Metropolis", seats: [], note: nil))
    let relay = Relay<Message>()
    let receiving = try pair.watch.receive { try relay.pass($0) }
    try relay.handle("the order") { message in
      let sent = Order(film: "Metropolis", seats: [], note: nil)
      let order = try message.value(as: Order.self)
      #expect(order == sent)
      #expect(message.from == "phone")
      #expect(message.kind == "Order")
      #expect(message.attempt == 1)
      #expect(!message.isRedelivered)
    }
    receiving.stop()
  }

  @Test(.blocking) func batchArrivesOneByOne() throws {
    let pair = try Pair()
    let sent = try pair.phone.send(contentsOf: Array(1...150))
    #expect(sent.map(\.count) == [64, 64, 22])
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == 150 }
    #expect(heard.all == Array(1...150))
    receiving.stop()
  }

  @Test func sequenceIsAcknowledgedOneByOne() async throws {
    let pair = try Pair()
    try await pair.phone.send("one")
    try await pair.phone.send(contentsOf: ["two", "three"])
    var heard: [String] = []
    for try await message in pair.watch.deliveries {
      heard.append(try message.value())
      try message.acknowledge()
      if heard.count == 3 { break }
    }
    #expect(heard == ["one", "two", "three"])
    try await eventuallyEmpty(pair)
  }

  private func eventuallyEmpty(_ pair: Pair) async throws {
    #expect(try pair.phone.pendingMessages.isEmpty)
  }

  @Test func senderLearnsHowItEnded() async throws {
    let pair = try Pair()
    let sent = try await pair.phone.send(1)
    #expect(try sent.state == .waiting)
    let receiving = try pair.watch.receive(Int.self) { _, _ in }
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    #expect(try sent.state == .ended)
    receiving.stop()
  }

  @Test func cancelledIsNeverReceived() async throws {
    let pair = try Pair()
    let first = try await pair.phone.send(1)
    try await pair.phone.send(2)
    #expect(try first.cancel() == .cancelled)
    #expect(try first.cancel() == .tooLate)
    #expect(try await first.waitForStatus(within: patience) == .cancelled)
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    try await heard.comes("the second") { $0 == [2] }
    receiving.stop()
  }

  @Test func failedComesAgainAndIsGivenUp() async throws {
    let pair = try Pair { $0.mailbox.retryDelay = .milliseconds(1) }
    let sent = try await pair.phone.send(contentsOf: [1, 2, 3])[0]
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(Int.self) { value, message in
      heard.add("\(value) \(message.attempt)")
      if value == 2 { throw Refusal() }
    }
    let end = try await sent.waitForStatus(within: patience)
    guard case .deadLettered = end else {
      Issue.record("\(end)")
      return
    }
    #expect(heard.all.filter { $0.hasPrefix("2") } == (1...5).map { "2 \($0)" })
    #expect(heard.all.filter { !$0.hasPrefix("2") } == ["1 1", "3 1"])
    receiving.stop()
  }
}

/// The error of a handler that refuses a message.
struct Refusal: Error {}

/// Two members of one container: a phone that sends and a watch that receives.
struct Pair {
  let meeting: Meeting
  let watch: Member
  let sender: Member
  let phone: Peer

  init(_ adjust: (inout Options) -> Void = { _ in }) throws {
    meeting = try Meeting(adjust)
    watch = try meeting.container.join(as: "watch")
    sender = try meeting.another(adjust).join(as: "phone")
    phone = sender.peer("watch")
  }
}
