import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// Messages that tests make, for calls of handlers.
@Suite struct MadeMessageTests {
  struct Order: Codable, Equatable, Sendable {
    var film: String
    var seats: [Int]
  }

  @Test(.blocking) func madeMessageIsLikeAReceivedOne() throws {
    let order = Order(film: "Metropolis", seats: [1, 2])
    let message = try Message.make(order, from: "till", id: "7", isUrgent: true)
    #expect(try message.value(as: Order.self) == order)
    #expect(message.from == "till")
    #expect(message.kind == "Order")
    #expect(message.id == "7")
    #expect(message.isUrgent)
    #expect(message.attempt == 1)
    #expect(!message.isRedelivered)
    #expect(message.batchIndex == 0)
    let error = #expect(throws: WormholeError.self) { try message.value(as: Int.self) }
    #expect(error?.code == .typeMismatch)
    try message.acknowledge()
  }

  @Test(.blocking) func madeMessagesAndRequestsHaveTheirHeaders() throws {
    let headers = ["trace-id": "7", "place": "foyer"]
    #expect(try Message.make(1, headers: headers).headers == headers)
    #expect(try Message.make(1).headers.isEmpty)
    #expect(try Request.make(1, headers: headers).headers == headers)
    #expect(try ImmediateMessage.make(1, headers: headers).headers == headers)
    let error = #expect(throws: WormholeError.self) { try Message.make(1, headers: ["": "x"]) }
    #expect(error?.operation == "make message")
  }

  @Test(.blocking) func laterAttemptIsRedelivered() throws {
    let second = try Message.make(1, attempt: 2)
    #expect(second.attempt == 2)
    #expect(second.isRedelivered)
    let early = try Message.make(1, isRedelivered: true)
    #expect(early.isRedelivered)
    #expect(early.attempt == 1)
    #expect(early.id != second.id)
  }

  @Test(.blocking) func recordSaysWhatTheHandlerDid() throws {
    let message = try Message.make(1)
    let record = try #require(message.record)
    #expect(record.isClaimed)
    try message.acknowledge()
    try message.fail("too late")
    #expect(record.isAcknowledged)
    #expect(record.failure == nil)

    let other = try Message.make(1)
    try other.fail("no seats")
    #expect(other.record?.failure == "no seats")
    #expect(other.record?.isAcknowledged == false)
  }

  @Test(.blocking) func messageThatIsLetGoOfHasFailed() throws {
    var message: Message? = try Message.make(1)
    let record = try #require(message?.record)
    message = nil
    #expect(record.failure == "the message was received and never acknowledged")
  }

  @Test func receivedMessageHasNoRecord() async throws {
    let two = try await TwoMembers()
    try await two.toSecond.send(1)
    for try await message in two.second.deliveries {
      #expect(message.record == nil)
      try message.acknowledge()
      break
    }
  }

  @Test(.blocking) func requestKeepsItsAnswer() throws {
    let request = try Request.make("how many?", from: nil, timeLeft: .seconds(3))
    let record = try #require(request.record)
    #expect(request.from == nil)
    #expect(request.kind == "String")
    #expect(request.timeLeft > .seconds(1))
    #expect(try request.value(as: String.self) == "how many?")
    #expect(!record.hasEnded)
    #expect(try record.reply(as: Int.self) == nil)
    try request.reply(3)
    try request.reply(4)  // Once answered, always answered.
    #expect(try record.reply(as: Int.self) == 3)
    #expect(record.refusal == nil)
    #expect(throws: WormholeError.self) { try record.reply(as: [String].self) }
  }

  @Test(.blocking) func requestKeepsItsRefusal() throws {
    let request = try Request.make(1)
    request.refuse("sold out")
    #expect(request.from == "phone")
    #expect(request.record?.refusal == "sold out")
    #expect(request.record?.hasEnded == true)
    #expect(try request.record?.reply(as: Int.self) == .some(nil))
  }

  @Test(.blocking) func immediateMessagesAndContextsAreMade() throws {
    let message = try ImmediateMessage.make([1, 2], kind: "numbers")
    #expect(message.kind == "numbers")
    #expect(message.from == "phone")
    #expect(try message.value(as: [Int].self) == [1, 2])
    let context = try Context.make(["a": 1], from: "watch")
    #expect(context.from == "watch")
    #expect(context.isReceived)
    #expect(try context.value(as: [String: Int].self) == ["a": 1])
  }

  @Test func sentEndsWhenTheTestSaysSo() async throws {
    let sent = try Sent.make(id: "a b", to: "watch", count: 3)
    #expect(sent.id == "a b")
    #expect(sent.to == "watch")
    #expect(sent.count == 3)
    #expect(try sent.state == .waiting)
    let waiting = Task { try await sent.waitForStatus() }
    #expect(sent.finish(.deadLettered(reason: "no room")))
    #expect(!sent.finish(.delivered))
    #expect(try await waiting.value == .deadLettered(reason: "no room"))
    #expect(try sent.state == .ended)
    #expect(try sent.cancel() == .tooLate)
    let cancelled = try Sent.make()
    #expect(try cancelled.cancel() == .cancelled)
    #expect(cancelled.status == .cancelled)
  }

  @Test(.blocking) func outcomesAreMade() {
    let outcome = Outcome(id: "1", to: "watch", kind: "Order", status: .expired)
    #expect(outcome.status == .expired)
  }

  @Test(.blocking) func errorIsMade() {
    let error = WormholeError.make(.full, "send message to", "watch", because: "it is full")
    #expect(error.code == .full)
    #expect(error.description == "cannot send message to 'watch': it is full")
    #expect(WormholeError.make(.system, errno: 28).errno == 28)
  }

  /// A handler of files gets a file that exists, moves and is removed as a received file does.
  @Test(.blocking) func messageHasAFile() throws {
    let folder = try TemporaryContainer()
    let path = folder.directory + "/ticket.txt"
    try write("Metropolis", to: path)
    let message = try Message.make(["film": 7], file: path)
    let file = try #require(message.file)
    #expect((file.name, file.size) == ("ticket.txt", 10))
    #expect(try file.metadata(as: [String: Int].self) == ["film": 7])
    #expect(try read(file.path) == "Metropolis")
    #expect(try file.withOriginalName { try read($0) } == "Metropolis")
    try file.move(to: folder.directory + "/taken")
    #expect(try read(folder.directory + "/taken") == "Metropolis")
    #expect(try !file.exists)
    let other = try Message.make(1, file: path)
    #expect(try other.file?.exists == true)
    try other.acknowledge()
    #expect(try other.file?.exists == false)
    let third = try Message.make(1)
    third.requeue()
    #expect(third.record?.isRequeued == true)
  }

  @Test(.blocking) func whatWasSentIsMade() throws {
    let file = SentFile(name: "a", size: 3)
    let outcome = try Outcome.make(sending: 7, status: .expired, file: file)
    #expect((outcome.kind, outcome.file, outcome.status) == ("Int", file, .expired))
    #expect(try outcome.value(as: Int.self) == 7)
    let sent = try Sent.make(sending: "hello", kind: "greeting")
    #expect(try (sent.kind, sent.value(as: String.self)) == ("greeting", "hello"))
    #expect(try sent.file == nil)
  }

  private func write(_ text: String, to path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    try file.writeFully(Array(text.utf8))
  }

  private func read(_ path: String) throws -> String {
    String(decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
  }
}
