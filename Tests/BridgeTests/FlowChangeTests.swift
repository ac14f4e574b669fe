import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// What happens to a message while it is in transit, without servers.
@Suite(.blocking) struct FlowChangeTests {
  private let machines: TwoMachines

  init() throws { machines = try TwoMachines() }

  @Test func aMessageIsCancelledInTransit() throws {
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    let other = try machines.send(2) { $0.wantsOutcome = true }
    try machines.settle()
    #expect(try sent.cancel() == .requested)
    try machines.settle()
    #expect(sent.waitForEnd(until: .now + patience) == .cancelled)
    #expect(try machines.receive(1) == [2])
    try machines.settle()
    #expect(other.waitForEnd(until: .now + patience) == .delivered)
    #expect(try machines.names("here/members/bob/claimed") == [])
  }

  @Test func aRequestToCancelThatComesTooLateChangesNothing() throws {
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    try machines.settle()
    #expect(try machines.receive(1) == [1])
    #expect(try sent.cancel() == .requested)
    try machines.settle()
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    #expect(try machines.names("here/members/bob/claimed") == [])
  }

  /// What is left of the time to live counts, whatever the sender's clock shows.
  @Test(arguments: [-3600, 0, 3600] as [Double])
  func theTimeToLiveSurvivesAWrongClock(_ error: Double) throws {
    let left = 100.0
    // By a clock that is right the message would live longer, or would have expired.
    try machines.send(1) { $0.timeToLive = .seconds(7200 + error + left) }
    let sides = try machines.opened()
    _ = try sides.here.out.collect(from: sides.here.residents.all(on: TwoMachines.thereName))
    let bundle = try #require(
      try sides.here.out.bundle(generation: 1, size: 1 << 16, largest: 1 << 16))
    let skewed = FlowBundle(
      flow: bundle.flow, generation: 1, first: 1, before: bundle.before,
      now: bundle.now + Int64((7200 + error) * 1e9), entries: bundle.entries,
      bodies: bundle.bodies)
    try sides.there.incoming.begin(bundle.flow)
    _ = try sides.there.incoming.receive([(skewed, 30_000_000_000)])
    let inbox = "there/members/bob/inbox"
    let name = try #require(try machines.names(inbox).first)
    let file = try Descriptor.open(
      path: machines.folder.path + "/\(inbox)/\(name)", [.readOnly])
    let list = try BinaryPropertyList.decode(try file.contents())
    let expires = try #require(list["expires"]?.dateValue)
    // Thirty seconds were spent under way.
    #expect(abs(expires.timeIntervalSinceNow - (left - 30)) < 20)
  }

  /// The other machine has another program under the sender's name: it must not get the outcome.
  @Test func aSenderWhoseNameIsTakenThereIsToldSo() throws {
    let namesake = try machines.there.join(as: "al")
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    try machines.settle()
    try machines.settle()
    let end = sent.waitForEnd(until: .now + patience)
    #expect(end == .deadLettered(reason: "a process of this machine has the name"))
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("there/bridge/out/\(TwoMachines.hereName)") == ["flow.plist"])
    withExtendedLifetime(namesake) {}
  }

  @Test func whatCannotBeReadBecomesADeadLetterHere() throws {
    let damaged = try machines.send(1)
    let inbox = "here/members/bob/inbox"
    let name = try #require(try machines.names(inbox).first)
    let path = "\(machines.folder.path)/\(inbox)/\(name)"
    try Descriptor.open(path: path, [.writeOnly]).truncate(to: 9)
    try machines.send(2)
    try machines.settle()
    #expect(try machines.receive(1) == [2])
    #expect(try machines.names("here/members/bob/dead").count == 2)
    #expect(try damaged.state != .inTransit)
  }

  /// Each command that waits for an outcome is a guest of its own.
  @Test func theProxyOfAGuestStaysAsLongAsSomethingWaitsForIt() throws {
    let guest = try machines.here.guest()
    try guest.peer("bob").send(1)
    var options = SendOptions()
    options.wantsOutcome = true
    let wanted = try guest.peer("bob").send(2, options)
    try machines.settle()
    let carrier = try machines.opened().there.residents.carrier
    #expect(try carrier.removeUnusedGuests() == [])
    #expect(try machines.names("there/guests").count == 1)
    #expect(try machines.receive(2) == [1, 2])
    #expect(try carrier.removeUnusedGuests() == [])
    try machines.settle()
    #expect(wanted.waitForEnd(until: .now + patience) == .delivered)
    #expect(try carrier.removeUnusedGuests().count == 1)
    #expect(try machines.names("there/guests") == [])
    withExtendedLifetime(guest) {}
  }

  /// A receiver returns the message between the listings of the inbox and of the claimed messages.
  @Test func theProxyOfAGuestStaysWhileItsMessageMoves() throws {
    let guest = try machines.here.guest()
    var options = SendOptions()
    options.wantsOutcome = true
    let wanted = try guest.peer("bob").send(1, options)
    try machines.settle()
    let member = "\(machines.folder.path)/there/members/bob"
    let name = try #require(try machines.names("there/members/bob/inbox").first)
    func move(_ from: String, _ to: String) throws {
      let outcome = try run("mv", ["\(member)/\(from)", "\(member)/\(to)"])
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    try move("inbox/\(name)", "claimed/\(name)~1")
    let carrier = try machines.opened().there.residents.carrier
    let pause = FaultPause()
    let removed = Monitor<[Carrier.Resident]?>(nil)
    let sweeper = try Thread("sweeper") {
      FaultPoints.with([FaultRule(.getdents, path: "bob/claimed", .pause(pause))]) {
        let found = try? carrier.removeUnusedGuests()
        removed.withLock { $0 = found }
      }
    }
    try eventually("the inbox is listed") { pause.isReached }
    try move("claimed/\(name)~1", "inbox/\(name)")
    pause.open()
    sweeper.join()
    #expect(removed.withLock { $0 } == [])
    #expect(try machines.receive(1) == [1])
    try machines.settle()
    #expect(wanted.waitForEnd(until: .now + patience) == .delivered)
    withExtendedLifetime(guest) {}
  }

  /// The bridge is killed between the cursor and the delivery, and then the sender's machine is
  /// given up: the message was received, and no other machine has it any more.
  @Test(arguments: [MachineRecord.Fate.putBack, .deadLetter])
  func whatWasReceivedOfALostMachineIsDelivered(_ fate: MachineRecord.Fate) throws {
    for number in 1...2 { try machines.send(number) { $0.wantsOutcome = number == 2 } }
    let bundles = try machines.published()
    let rule = FaultRule(
      .rename, path: "there/members/bob/inbox", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try machines.receive(bundles) }
    }
    machines.kill()
    #expect(try machines.names("there/members/bob/inbox") == [])
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)").count == 3)
    let residents = try Residents(machines.there, Carrier(machines.there))
    try Leftovers.settle(TwoMachines.hereName, fate, residents)
    #expect(try machines.receive(2) == [1, 2])
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
  }

  @Test func messagesToAMemberWhoseInboxIsFullWaitHere() throws {
    try machines.send(1)
    try machines.settle()
    var options = Options()
    options.mailbox.maximumQueuedMessages = 1
    let strict = try Carrier(
      SharedContainer(directory: machines.there.directory, options: options))
    #expect(try strict.isFull("bob") && !strict.isFull("nobody"))
    let late = try machines.send(2) { $0.wantsOutcome = true }
    let sides = try machines.opened()
    let proxies = sides.here.residents.all(on: TwoMachines.thereName)
    #expect(try sides.here.out.collect(from: proxies, full: ["bob"]))
    #expect(try late.cancel() == .cancelled)
    #expect(try machines.receive(1) == [1])
    #expect(try !strict.isFull("bob"))
  }

  /// Another machine may send anything.
  @Test func outcomesOfOthersMessagesAreIgnored() throws {
    let sent = try machines.send(1) { $0.wantsOutcome = true }
    try machines.settle()
    let third = "000000000000000c"
    let sides = try machines.opened()
    let out = try OutFlow(to: third, sides.here.residents)
    let incoming = try InFlow(from: third, sides.here.residents, out.refusals)
    let name = try #require(try machines.names("here/members/bob/claimed").first)
    let entry = FlowEntry(
      .outcome(.delivered), to: "bob", try #require(MessageName(String(name.dropLast(2)))))
    try incoming.begin("0123456789abcdef")
    let forged = FlowBundle(
      flow: "0123456789abcdef", generation: 1, first: 1, before: .start, now: 0, entries: [entry],
      bodies: [nil])
    #expect(try incoming.receive([(forged, 0)]) == [.received(1)])
    #expect(try sent.state == .inTransit)
  }

  /// Bytes of every kind are refused or read, and never end the process.
  @Test func bundlesOfAnyBytes() throws {
    let sides = try machines.opened()
    try machines.send(1) { $0.wantsOutcome = true }
    _ = try sides.here.out.collect(from: sides.here.residents.all(on: TwoMachines.thereName))
    let bundle = try #require(
      try sides.here.out.bundle(generation: 1, size: 1 << 16, largest: 1 << 16))
    let bytes = try #require(bundle.encoded())
    #expect(FlowBundle(bytes) == bundle)
    var random = SeededRandom(seed: TestRun.seed)
    try sides.there.incoming.begin(bundle.flow)
    for _ in 0..<500 {
      var changed = bytes
      for _ in 0...Int.random(in: 0...3, using: &random) {
        changed[Int.random(in: changed.indices, using: &random)] = .random(
          in: 0...255, using: &random)
      }
      if Bool.random(using: &random) {
        changed.removeLast(Int.random(in: 0..<changed.count, using: &random))
      }
      if let read = FlowBundle(changed) { #expect(read.entries.count == read.bodies.count) }
    }
  }
}
