import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Messages and outcomes between two machines, without servers.
@Suite(.blocking) struct FlowTests {
  private let machines: TwoMachines

  init() throws { machines = try TwoMachines() }

  @Test func messagesArriveInOrderAndOutcomesComeBack() throws {
    let first = try machines.send(1) { $0.wantsOutcome = true }
    try machines.send(2)
    let urgent = try machines.send(3) {
      $0.isUrgent = true
      $0.wantsOutcome = true
    }
    try machines.settle()
    #expect(try first.state == .inTransit)
    #expect(try machines.receive(3) == [3, 1, 2])
    try machines.settle()
    #expect(first.waitForEnd(until: .now + patience) == .delivered)
    #expect(urgent.waitForEnd(until: .now + patience) == .delivered)
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("there/members/al/receipts") == [])
    for folder in [
      "here/bridge/out/\(TwoMachines.thereName)", "there/bridge/out/\(TwoMachines.hereName)",
    ] {
      #expect(try machines.names(folder) == ["flow.plist"])
    }
  }

  /// The limit of the servers is the size of the largest message that they carry.
  @Test func aMessageOfTheLargestSizeIsCarried() throws {
    try machines.send(1)
    let here = try machines.opened().here
    _ = try here.out.collect(from: here.residents.all(on: TwoMachines.thereName))
    // The bundle is not published in between, so each call returns the same one.
    func body(largest: Int) throws -> [UInt8]? {
      let bundle = try here.out.bundle(generation: 1, size: 400 << 10, largest: largest)
      return try #require(bundle).bodies[0]
    }
    let bytes = try #require(try body(largest: 900 << 10))
    #expect(try body(largest: bytes.count) == bytes)
    #expect(try body(largest: bytes.count - 1) == nil)
  }

  /// Whatever the wire does, each message arrives once and in order.
  @Test(arguments: 0..<20)
  func aWireThatLosesAndRepeats(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    machines.wire = { _ in Int.random(in: 0...2, using: &random) }
    for round in 0..<5 {
      for number in 0..<40 {
        try machines.send(round * 40 + number) { $0.wantsOutcome = number.isMultiple(of: 3) }
      }
      try machines.pump()
      if seed.isMultiple(of: 3) { machines.kill() }
    }
    try machines.settle()
    #expect(try machines.receive(200) == Array(0..<200))
    try machines.settle()
    #expect(try machines.names("here/members/bob/claimed") == [])
  }

  // MARK: Each mechanism

  /// Without the cursor, the next bridge would take what arrives again for new messages.
  @Test func aBridgeThatIsKilledBeforeItConfirmsReceivesNothingTwice() throws {
    for number in 1...3 { try machines.send(number) }
    let bundles = try machines.published()
    try machines.receive(bundles)
    machines.kill()
    try machines.receive(bundles)
    #expect(try machines.names("there/members/bob/inbox").count == 3)
  }

  /// Without the record, nothing would name the claimed messages that no bundle contains yet.
  @Test func aBridgeThatIsKilledBeforeItPublishesLosesNothing() throws {
    for number in 1...3 { try machines.send(number) }
    _ = try machines.published()
    #expect(try machines.names("here/members/bob/inbox") == [])
    machines.kill()
    try machines.settle()
    #expect(try machines.names("there/members/bob/inbox").count == 3)
  }

  @Test func aBundleThatArrivesTwiceIsReceivedOnce() throws {
    for number in 1...3 { try machines.send(number) }
    let bundles = try machines.published()
    #expect(try machines.receive(bundles) == [.received(3)])
    #expect(try machines.receive(bundles) == [.known])
    #expect(try machines.names("there/members/bob/inbox").count == 3)
  }

  /// Two copies of a machine give one number to two messages: by the number alone, the second
  /// message would be a duplicate of the first one.
  @Test func aCopyOfTheMachineIsNotedByItsChain() throws {
    try machines.send(1) { $0.wantsOutcome = false }
    try machines.settle()
    let copy = try machines.copy()
    try machines.send(2) { $0.wantsOutcome = false }
    try machines.send(3) { $0.wantsOutcome = false }
    try copy.container.peer("bob").send(4)
    try machines.receive(copy.published())
    #expect(try machines.receive(machines.published()) == [.otherChain])
    #expect(try machines.names("there/members/bob/inbox").count == 2)
    let sides = try machines.opened()
    let position = try #require(sides.there.incoming.position)
    #expect(throws: FlowConflict.self) { try sides.here.out.confirm(position) }
    #expect(try machines.names("here/members/bob/claimed").count == 2)
  }

  /// The sender removes what is confirmed, so the receiver must have it on its disk before.
  @Test(arguments: ["cursor.plist", "0000000000000002", "bridge/in"])
  func nothingIsConfirmedBeforeItIsStored(_ file: String) throws {
    for number in 1...3 { try machines.send(number) }
    let bundles = try machines.published()
    let incoming = try machines.opened().there.incoming
    // Every write and every sync of the file fails, as on a full disk.
    let calls: [Call] = file == "bridge/in" ? [.fsync] : [.write, .fsync, .rename]
    let rules = calls.map { FaultRule($0, path: file, persistent: true, .fail(.noSpace)) }
    try incoming.begin(bundles[0].flow)
    FaultPoints.with(rules) {
      #expect(throws: WormholeError.self) { try machines.receive(bundles) }
    }
    #expect(incoming.position?.number ?? 0 == 0)
    #expect(try machines.names("there/members/bob/inbox") == [])
    machines.kill()
    try machines.settle()
    #expect(try machines.receive(3) == [1, 2, 3])
  }

  /// The next cursor names the messages no more: a power cut would take what was confirmed.
  @Test func whatIsDeliveredIsDurable() throws {
    try machines.there.join(as: "bob").leave()
    try machines.send(1)
    let bundles = try machines.published()
    let rule = FaultRule(
      .fsync, path: "there/members/bob", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try machines.receive(bundles) }
    }
    machines.kill()
    try machines.settle()
    #expect(try machines.receive(1) == [1])
  }

  @Test func aBundleThatTheServersLoseIsSentAgain() throws {
    for number in 1...3 { try machines.send(number) }
    // The servers have acknowledged it, and have it no more.
    _ = try machines.published()
    try machines.send(4)
    #expect(throws: Never.self) { try machines.settle() }
    #expect(try machines.names("there/members/bob/inbox").count == 4)
  }

  /// An outcome for a proxy that is missing would be dropped.
  @Test func proxiesThatCannotBeListedStayOpen() throws {
    let residents = try machines.opened().here.residents
    FaultPoints.with([FaultRule(.getdents, persistent: true, .fail(.inputOutput))]) {
      #expect(throws: WormholeError.self) { try residents.reopen(TwoMachines.thereName) }
    }
    #expect(residents.all(on: TwoMachines.thereName).map(\.name) == ["bob"])
    try residents.reopen(TwoMachines.thereName)
    #expect(residents.all(on: TwoMachines.thereName).map(\.name) == ["bob"])
  }

  /// What follows a lost bundle is dropped, and confirms nothing.
  @Test func aGapConfirmsNothing() throws {
    try machines.send(1)
    let first = try machines.published()
    try machines.send(2)
    let second = try machines.published()
    try machines.opened().there.incoming.begin(first[0].flow)
    #expect(try machines.receive(second) == [.gap])
    #expect(try machines.opened().there.incoming.position?.number == 0)
    #expect(try machines.receive(first) == [.received(1)])
    #expect(try machines.receive(second) == [.received(2)])
    #expect(try machines.receive(2) == [1, 2])
  }

  /// The bridges are killed before each of their calls, one after the other, or the call fails:
  /// whichever it was, the next bridges lose nothing, repeat nothing and keep the order.
  @Test(arguments: [true, false])
  func whicheverCallIsTheLast(_ isKilled: Bool) throws {
    // A short run takes some of the calls, others each time.
    let step = TestRun.isLong ? 1 : 13
    var call = 1 + Int(TestRun.seed % UInt64(step))
    while try survives(call, isKilled) { call += step }
    #expect(call > 60, "only \(call) calls")
  }

  /// Returns false if the bridges make fewer calls.
  private func survives(_ call: Int, _ isKilled: Bool) throws -> Bool {
    let machines = try TwoMachines()
    let sent = try (1...3).map { number in
      try machines.send(number) { $0.wantsOutcome = number != 2 }
    }
    let rule = FaultRule(nil, number: call, persistent: isKilled, .fail(.inputOutput))
    var isReached = try pump(machines, rule)
    try machines.settle()
    #expect(try machines.receive(3) == [1, 2, 3], "call \(call)")
    if !isReached { isReached = try pump(machines, rule) }
    try machines.settle()
    for one in [sent[0], sent[2]] {
      let end = one.waitForEnd(until: .now + patience)
      #expect(end == .delivered, "call \(call)")
    }
    #expect(try machines.names("here/members/bob/claimed") == [], "call \(call)")
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
    return isReached
  }

  /// Returns whether the bridges made the call to which the rule applies.
  ///
  /// A bridge that meets an error begins anew.
  private func pump(_ machines: TwoMachines, _ rule: FaultRule) throws -> Bool {
    var failure: (any Error)?
    let calls = FaultPoints.with([rule]) {
      do { try machines.pump() } catch { failure = error }
    }
    if failure != nil || rule.persistent { machines.kill() }
    return calls.count >= rule.number
  }
}
