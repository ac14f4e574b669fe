import TestSupport
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// Messages whose outcome cannot be recorded for a moment: the outcome is the same afterwards.
@Suite struct DelayedEndTests {
  private let clock = TestClock()
  private let trouble = Heard<LogEntry>()
  private let two: TwoMembers

  init() async throws {
    var options = Options()
    options.log = { [trouble] entry in if entry.level >= .notice { trouble.add(entry) } }
    two = try await TwoMembers(clock: clock, options: options)
  }

  private func folder(_ path: String) throws -> Descriptor {
    try Descriptor.open(path: "\(two.container.path)/members/\(path)", [.readOnly, .directory])
  }

  /// Replaces the sender's receipts by an object to which no file can be moved.
  private func closeReceipts() throws {
    let phone = try folder("phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
  }

  private func openReceipts() throws {
    let phone = try folder("phone")
    // In one step: the receiver, which tries again, would make a missing directory.
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
  }

  /// Sends a message that expires before a receiver may get it, and whose outcome cannot be
  /// reported.
  private func sendTooLate() async throws -> Sent {
    var options = SendOptions()
    options.timeToLive = .seconds(1)
    let sent = try await two.toSecond.send(1, options)
    try closeReceipts()
    clock.advance(by: .seconds(2))
    return sent
  }

  /// The outcome of the message, moving the clock until it is known.
  private func end(of sent: Sent) async throws -> Outcome.Status? {
    try await eventually("it ends") {
      clock.advance(by: .seconds(61))
      return sent.status != nil
    }
    return sent.status
  }

  @Test func whatCannotBeEndedAsExpiredIsNotHandedOver() async throws {
    let sent = try await sendTooLate()
    let heard = Heard<Int>()
    let receiving = try two.second.receive(Int.self) { number, _ in heard.add(number) }
    try await eventually("it is claimed") { try !folder("watch/claimed").names().isEmpty }
    try await eventually("it cannot be ended") { trouble.all.contains { $0.level == .error } }
    try openReceipts()
    #expect(try await end(of: sent) == .expired)
    #expect(heard.all == [])
    #expect(try folder("watch/dead").names() == [])
    receiving.stop()
  }

  /// The message's file is missing.
  ///
  /// After an earlier attempt, the loss would be attributed to the attempt.
  @Test func whatCannotBeGivenUpIsNotHandedOver() async throws {
    let path = two.container.directory + "/film"
    try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600).write("Metropolis")
    let sent = try await two.toSecond.send(file: path)
    let files = try folder("watch/files")
    for name in try files.names() where name != "room" { try files.unlink(name) }
    try closeReceipts()
    let heard = Heard<String>()
    let receiving = try two.second.receive { heard.add($0.kind) }
    try await eventually("it is buried") { try !folder("watch/dead").names().isEmpty }
    try await eventually("it cannot be ended") { trouble.all.contains { $0.level == .error } }
    try openReceipts()
    guard case .deadLettered = try await end(of: sent) else {
      Issue.record("it ended as \(String(describing: sent.status))")
      return
    }
    #expect(heard.all == [])
    receiving.stop()
  }

  /// A waiting sender is not refused for lack of space while there is space.
  @Test func roomForOneIsEnoughForOneThatWaits() async throws {
    var options = Options()
    options.mailbox.maximumQueuedMessages = 80
    let two = try await TwoMembers(clock: clock, options: options)
    var sending = SendOptions()
    sending.durability = .process
    for number in 1...80 { try await two.toSecond.send(number, sending) }
    let alarms = clock.alarms
    sending.whenFull = .wait(.seconds(3))
    let last = Task { [sending] in try await two.toSecond.send(81, sending).count }
    try await eventually("it waits") { clock.alarms > alarms }
    let inHand = Monitor(0)
    let receiving = try two.second.receive { _ in
      inHand.signal { $0 += 1 }
      _ = inHand.wait(until: .now + patience) { $0 == 0 ? true : nil }
    }
    try await eventually("one is in hand") { inHand.withLock { $0 } == 1 }
    clock.advance(by: .seconds(3))
    #expect(try await last.value == 1)
    inHand.signal { $0 = 0 }
    receiving.stop()
  }

  /// No process lists the queue, so no other process would end the message.
  @Test func whatCannotBeEndedByItsSenderIsTriedAgain() async throws {
    let sent = try await sendTooLate()
    try await eventually("it cannot be ended") { !trouble.all.isEmpty }
    try openReceipts()
    #expect(try await end(of: sent) == .expired)
  }
}
