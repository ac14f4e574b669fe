import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Options that are made in one expression, and options as arguments of `send`.
@Suite struct OptionArgumentTests {
  @Test(.blocking) func argumentsAreTheOptionsOfTheMessage() throws {
    let pair = try Pair()
    try pair.phone.send(1, durability: .process, kind: "last")
    try pair.phone.send(
      2, durability: .process, timeToLive: .seconds(60), isUrgent: true, id: "one", kind: "note",
      headers: ["k": "v"], wantsOutcome: false, whenFull: .wait(.seconds(1)))
    try pair.phone.send(contentsOf: [3, 4], durability: .process, isUrgent: true, id: "two")
    try check(pair)
  }

  @Test func tasksHaveTheSameArguments() async throws {
    let pair = try Pair()
    try await pair.phone.send(1, durability: .process, kind: "last")
    try await pair.phone.send(
      2, durability: .process, timeToLive: .seconds(60), isUrgent: true, id: "one", kind: "note",
      headers: ["k": "v"], wantsOutcome: false, whenFull: .wait(.seconds(1)))
    try await pair.phone.send(contentsOf: [3, 4], durability: .process, isUrgent: true, id: "two")
    try check(pair)
  }

  private func check(_ pair: Pair) throws {
    let queue = try pair.phone.queue
    #expect(queue.map(\.id).prefix(2) == ["one", "two"])
    #expect(queue.map(\.kind) == ["note", "Int", "last"])
    #expect(queue.map(\.isUrgent) == [true, true, false])
    #expect(queue.map(\.count) == [1, 2, 1])
    #expect(queue[0].headers == ["k": "v"])
    // The mark of a message without an outcome.
    let file = try #require(try pair.files("inbox").first { $0.contains(",one,") })
    #expect(file.contains(",n01,"))
  }

  @Test(.blocking) func theArgumentForAFullInboxIsUsed() throws {
    let pair = try fullPair()
    try checkThatItWaits { try pair.phone.send(3, durability: .process, whenFull: Self.waits) }
    try checkThatItWaits {
      try pair.phone.send(contentsOf: [3], durability: .process, whenFull: Self.waits)
    }
  }

  @Test func tasksWaitForAFullInboxToo() async throws {
    let pair = try fullPair()
    var begun = Instant.now
    let error = try await failure {
      try await pair.phone.send(3, durability: .process, whenFull: Self.waits)
    }
    #expect(error.code == .full)
    #expect(.now - begun >= Self.shortest)
    begun = .now
    _ = try await failure {
      try await pair.phone.send(contentsOf: [3], durability: .process, whenFull: Self.waits)
    }
    #expect(.now - begun >= Self.shortest)
  }

  private static let shortest = Duration.milliseconds(200)
  private static let waits = SendOptions.WhenFull.wait(shortest)

  private func fullPair() throws -> Pair {
    let pair = try Pair { $0.mailbox.maximumQueuedMessages = 2 }
    try pair.send(1...2)
    return pair
  }

  private func checkThatItWaits(_ send: () throws -> Void) throws {
    let begun = Instant.now
    #expect(try failure(send).code == .full)
    #expect(.now - begun >= Self.shortest)
  }

  /// Each default of an initializer is the value that the property has always had.
  @Test(.blocking) func theDefaultsAreTheDocumentedOnes() {
    let (send, mailbox, options) = (SendOptions(), MailboxOptions(), Options())
    #expect(send.durability == .power && send.timeToLive == nil && !send.isUrgent)
    #expect(send.id == nil && send.kind == nil && send.headers == [:] && send.wantsOutcome == nil)
    #expect(send.whenFull == .fail)
    #expect(mailbox.attempts == 5 && mailbox.retryDelay == .milliseconds(100))
    #expect(!mailbox.keepsOrderOnRetry && mailbox.maximumQueuedMessages == 262_144)
    #expect(mailbox.maximumQueueBytes == 1 << 30 && mailbox.maximumDeadLetters == 1000)
    #expect(mailbox.maximumReceiptBytes == 64 << 20 && mailbox.onFileProgress == nil)
    #expect(options.sharing == .owner && options.durability == .process)
    #expect(options.lease == .seconds(1) && options.timeout == .seconds(30))
    #expect(options.maximumValueBytes == 64 << 20)
    #expect(options.createsIfMissing && options.writerName.hasSuffix("(\(Processes.current))"))
  }

  @Test(.blocking) func oneExpressionMakesEachOptionsType() throws {
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(
      directory: folder.path + "/c",
      options: Options(
        sharing: .owner, durability: .power, lease: .seconds(2), timeout: .seconds(3),
        maximumValueBytes: 1000,
        mailbox: MailboxOptions(attempts: 1, retryDelay: .zero, keepsOrderOnRetry: true),
        createsIfMissing: true, writerName: "test", log: { _ in }))
    try container.channel("a").put(1)
    #expect(try container.channel("a", of: Int.self).metadata?.writer == "test")
    let error = try failure { try container.channel("a").put(String(repeating: "x", count: 2000)) }
    #expect(error.code == .tooLarge)
  }
}
