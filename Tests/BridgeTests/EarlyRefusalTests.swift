import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// A large message is refused by its first piece, and its receiver's home moves, without servers.
@Suite(.blocking) struct EarlyRefusalTests {
  private let machines: TwoMachines
  private static let third = "000000000000000c"
  private static let piece = FlowPiece.bytes

  init() throws {
    machines = try TwoMachines()
    machines.thereOptions.maximumValueBytes = 1 << 20
    machines.kill()
    _ = try machines.opened()
  }

  private func send(_ pieces: Int) throws -> Sent {
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = true
    let text = String(repeating: "x", count: pieces * Self.piece)
    return try machines.sender.peer("bob").send(text, options)
  }

  /// Lets the home of the receiver be a third machine, as far as the sender's machine knows.
  private func moveHome() throws {
    let here = try machines.opened().here
    try here.residents.move("bob", to: Self.third)
    here.residents.formerHomes = { _ in [TwoMachines.thereName] }
  }

  /// Lets the sender's machine send the whole message to the third one.
  private func sendOn() throws -> OutFlow {
    let residents = try machines.opened().here.residents
    let onward = try OutFlow(to: Self.third, residents)
    for _ in 0..<20 {
      _ = try onward.collect(from: residents.all(on: Self.third))
      var chain = EntryChain.start
      var last = 0
      while let bundle = try onward.bundle(generation: 1, size: 400 << 10, largest: 900 << 10) {
        onward.note(published: bundle)
        chain = bundle.entries.reduce(bundle.before) { $0.followed(by: $1) }
        last = bundle.last
      }
      guard last > 0 else { break }
      try onward.confirm(FlowPosition(flow: onward.flow, number: last, chain: chain))
    }
    return onward
  }

  /// The old home has had pieces only.
  ///
  /// Its refusal arrives when the message is on its way to the present home, which delivers it.
  @Test func aRefusalOfPiecesDecidesNothingAfterAMove() throws {
    let sent = try send(40)
    try machines.receive(try machines.published())
    let refusal = try machines.opened().there.published()
    #expect(refusal.flatMap(\.entries).count == 1)
    try moveHome()
    let onward = try sendOn()
    #expect(try sent.state == .inTransit)
    _ = try machines.opened().here.receive(refusal)
    #expect(try sent.state == .inTransit, "the present home decides")
    #expect(try machines.names("here/members/bob/claimed").count == 1)
    // The outcome of the present home counts.
    let here = try machines.opened().here
    let incoming = try InFlow(from: Self.third, here.residents, onward.refusals)
    let name = try #require(
      try machines.names("here/members/bob/claimed").first.flatMap { ClaimedName($0)?.name })
    let entry = FlowEntry(.outcome(.delivered), to: "bob", name)
    try incoming.begin("0123456789abcdef")
    let bundle = FlowBundle(
      flow: "0123456789abcdef", generation: 1, first: 1, before: .start, now: 0,
      entries: [entry], bodies: [nil])
    _ = try incoming.receive([(bundle, 0)])
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
  }

  /// Any machine of the group can send a bundle with an outcome.
  @Test func anOutcomeOfAMachineThatWasNeverTheHomeIsIgnored() throws {
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    _ = try machines.published()
    let claimed = try machines.names("here/members/bob/claimed").first
    let name = try #require(claimed.flatMap { ClaimedName($0)?.name })
    let here = try machines.opened().here
    let incoming = try InFlow(from: Self.third, here.residents, here.out.refusals)
    let flow = "0123456789abcdef"
    try incoming.begin(flow)
    let bundle = FlowBundle(
      flow: flow, generation: 1, first: 1, before: .start, now: 0,
      entries: [FlowEntry(.outcome(.delivered), to: "bob", name)], bodies: [nil])
    _ = try incoming.receive([(bundle, 0)])
    #expect(try sent.state == .inTransit)
    #expect(try machines.names("here/members/bob/claimed").count == 1)
  }

  /// The old home has had the message itself, too, so no other machine gets it.
  @Test func aRefusedMessageIsADeadLetterAlsoAfterAMove() throws {
    let sent = try send(8)
    try machines.receive(try machines.published())
    try moveHome()
    _ = try machines.opened().here.receive(try machines.opened().there.published())
    try machines.settle()
    guard case .deadLettered = sent.waitForEnd(until: .now + patience) else {
      Issue.record("\(try sent.state)")
      return
    }
    #expect(try machines.names("here/members/bob/claimed") == [])
  }

  /// A home of the past refuses nothing for its own limits: the present home has its own limits.
  @Test(arguments: [8, 40]) func aHomeOfThePastLeavesTheDecisionToThePresentOne(
    _ pieces: Int
  ) throws {
    let (here, there) = try machines.opened()
    here.incoming.isFree = { [out = here.out] in try out.isFree($0) }
    try there.residents.move("bob", to: Self.third)
    let sent = try send(pieces)
    // The message itself leaves with its last piece, and comes back at once.
    for _ in 0..<(pieces + 15) / 16 { try machines.pump() }
    #expect(try sent.state == .waiting, "it is sent to the present home as soon as that is known")
    #expect(try machines.names("here/members/bob/inbox").count == 1)
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
  }

  /// Lets the other machine refuse the first piece, and retries the message at once.
  private func refuseAndRetry(_ id: String) throws {
    let (here, there) = try machines.opened()
    here.incoming.endTransfer = { [out = here.out] entry throws(WormholeError) in
      try out.endTransfer(of: entry)
    }
    try machines.receive(try machines.published())
    let refusal = try there.published()
    #expect(refusal.flatMap(\.entries).count == 1)
    try here.out.confirm(try #require(there.incoming.position))
    _ = try here.receive(refusal)
    try there.out.confirm(try #require(here.incoming.position))
    for out in [here.out, there.out] { try out.finish() }
    #expect(try machines.here.peer("bob").retry(id: id))
  }

  /// The first retry gives the message another name, and each later one keeps the name.
  ///
  /// The other machine permits larger messages by now, and has kept none of the first pieces.
  @Test func aRetriedMessageBeginsWithItsFirstPiece() throws {
    let sent = try send(40)
    for _ in 0..<2 { try refuseAndRetry(sent.id) }
    let next = try machines.published().flatMap(\.entries)
    #expect(next.first?.kind == .dropped)
    #expect(next.dropFirst().first?.piece?.index == 0)
    machines.thereOptions = Options()
    machines.kill()
    try machines.settle()
    #expect(try machines.names("there/members/bob/inbox").count == 1)
    #expect(try machines.here.peer("bob").deadLetters.isEmpty)
  }
}
