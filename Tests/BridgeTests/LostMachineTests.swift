import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// Flows of machines that are lost, or become other machines, while homes move, without servers.
@Suite(.blocking) struct LostMachineTests {
  private let machines: TwoMachines
  private static let third = "000000000000000c"

  init() throws { machines = try TwoMachines() }

  private func folder(to machine: String) -> String { "here/bridge/out/\(machine)" }

  /// The home of the receiver moves from a machine that is given up afterwards: nobody else ends
  /// what is in transit to the lost machine.
  @Test(arguments: [MachineRecord.Fate.putBack, .deadLetter])
  func whatIsInTransitToALostFormerHomeEnds(_ fate: MachineRecord.Fate) throws {
    let lost = try machines.send(1) { $0.wantsOutcome = true }
    _ = try machines.published()
    let residents = try machines.opened().here.residents
    try residents.move("bob", to: Self.third)
    let next = try machines.send(2) { $0.wantsOutcome = true }
    let out = try OutFlow(to: Self.third, residents)
    _ = try out.collect(from: residents.all(on: Self.third))
    #expect(try machines.names("here/members/bob/claimed").count == 2)
    try Leftovers.settle(TwoMachines.thereName, fate, residents)
    #expect(try machines.names("here/members/bob/claimed").count == 1)
    #expect(try next.state == .inTransit)
    switch fate {
    case .putBack: #expect(try machines.names("here/members/bob/inbox").count == 1)
    case .deadLetter:
      #expect(try machines.here.peer("bob").deadLetters.map(\.id) == [lost.id])
    }
    #expect(try machines.names(folder(to: TwoMachines.thereName)) == [])
  }

  /// Whichever of the lost machine's members has the closed directory.
  @Test(arguments: [MachineRecord.Fate.putBack, .deadLetter])
  func aClosedDirectoryHoldsUpNoOtherNameOfALostMachine(_ fate: MachineRecord.Fate) throws {
    let residents = try machines.opened().here.residents
    for name in ["carol", "dan"] {
      _ = try residents.proxy(of: .member(name), on: TwoMachines.thereName)
    }
    try machines.send(1)
    _ = try machines.published()
    let rule = FaultRule(
      .open, path: "here/members/bob/claimed", persistent: true, .fail(.accessDenied))
    var error: WormholeError?
    try FaultPoints.with([rule]) {
      error = try failure { try Leftovers.settle(TwoMachines.thereName, fate, residents) }
    }
    #expect(error?.code == .permissionDenied)
    #expect(residents.all.map(\.name) == ["bob"])
    #expect(try machines.names("here/members/bob/claimed").count == 1)
    try Leftovers.settle(TwoMachines.thereName, fate, residents)
    #expect(residents.all.isEmpty)
    #expect(try machines.names("here/members/bob/claimed") == [])
  }

  /// As a damaged record, whose machine is given up all the same.
  @Test func aDamagedCursorKeepsNoMachineFromBeingGivenUp() throws {
    _ = try machines.send(1)
    _ = try machines.published()
    let residents = try machines.opened().here.residents
    let bytes: [UInt8] = [1]
    try BridgeFolder(["in", TwoMachines.thereName], of: machines.here.storage)
      .write(InFlow.cursorName, bytes)
    try Leftovers.settle(TwoMachines.thereName, .putBack, residents)
    #expect(residents.all.isEmpty)
    #expect(try machines.names("here/members/bob/inbox").count == 1)
  }

  /// As after a power cut, which may damage a message that was sent without a sync.
  @Test(arguments: [false, true])
  func aDamagedMessageInTransitHoldsUpNoOther(_ isLost: Bool) throws {
    try machines.send(1)
    try machines.send(2)
    _ = try machines.published()
    let claimed = "here/members/bob/claimed"
    let name = try #require(try machines.names(claimed).first)
    let path = "\(machines.folder.path)/\(claimed)/\(name)"
    try Descriptor.open(path: path, [.writeOnly]).truncate(to: 9)
    if isLost {
      try Leftovers.settle(TwoMachines.thereName, .putBack, machines.opened().here.residents)
    } else {
      machines.kill()
      let storage = machines.here.storage
      _ = try Place.open(
        BridgeFolder(of: storage), group: "g", storage.options.environment)
      #expect(try MachineRejoin.run(machines.here, drops: false) == 2)
    }
    #expect(try machines.names(claimed) == [])
    #expect(try machines.names("here/members/bob/inbox").count == 1)
    // A letter has a second file, with the reason.
    #expect(try machines.names("here/members/bob/dead").count == 2)
  }

  /// The owner of the receiver's directory opens it after the machine was given up.
  @Test(arguments: [false, true])
  func whatIsInTransitAtAClosedProxyEndsOnceTheProxyIsOpen(_ hasMoved: Bool) throws {
    try machines.send(1)
    _ = try machines.published()
    if hasMoved { try machines.opened().here.residents.move("bob", to: Self.third) }
    machines.kill()
    let rule = FaultRule(
      .open, path: "here/members/bob", persistent: true, .fail(.accessDenied))
    var made: Residents?
    var refusal: WormholeError?
    try FaultPoints.with([rule]) {
      let residents = try Residents(machines.here, Carrier(machines.here))
      made = residents
      refusal = try failure {
        try Leftovers.settle(TwoMachines.thereName, .putBack, residents)
      }
    }
    #expect(refusal?.code == .permissionDenied)
    #expect(try machines.names("here/members/bob/claimed").count == 1)
    // The bridge repeats the call.
    try Leftovers.settle(TwoMachines.thereName, .putBack, #require(made))
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("here/members/bob/inbox").count == 1)
    #expect(try machines.names(folder(to: TwoMachines.thereName)) == [])
  }

  /// A refused or kept message is named after its number: the number of another flow is not meant.
  @Test(arguments: [false, true])
  func whatANewMachineReceivesIsNotTakenForARefusedMessage(_ wantsOutcome: Bool) throws {
    try machines.there.join(as: "bob").leave()
    let folder = try BridgeFolder(of: machines.there.storage)
    _ = try Place.open(folder, group: "g", machines.there.storage.options.environment)
    // The directory of the first receiver is closed all the time.
    let rule = FaultRule(
      .open, path: "there/members/bob", persistent: true, .fail(.accessDenied))
    try FaultPoints.with([rule]) {
      try machines.send(1) { $0.wantsOutcome = wantsOutcome }
      #expect(try machines.receive(machines.published()) == [.received(1)])
      machines.kill()
      _ = try MachineRejoin.run(machines.there, drops: false)
      let name = try #require(try Place.read(folder)).machine
      let path = machines.folder.path
      let here = try TwoMachines.Side(TwoMachines.hereName, name, path + "/here")
      let there = try TwoMachines.Side(name, TwoMachines.hereName, path + "/there")
      _ = try here.residents.proxy(of: .member("carol"), on: name)
      var options = SendOptions()
      options.durability = .process
      options.wantsOutcome = wantsOutcome
      try machines.sender.peer("carol").send(2, options)
      #expect(try there.receive(here.published()) == [.received(1)])
    }
    #expect(try machines.names("there/members/carol/inbox").count == 1)
  }

  /// A bridge of an earlier version has refused or kept the message, and was killed before it
  /// removed the staged file.
  ///
  /// The file is named after the number alone, so it may be about a message of a former flow.
  @Test(arguments: [".refused", ".kept"], [true, false])
  func whatAnEarlierVersionHasRefusedIsNotDelivered(_ mark: String, _ isOther: Bool) throws {
    try machines.there.join(as: "bob").leave()
    for number in 1...2 { try machines.send(number) { $0.wantsOutcome = mark == ".refused" } }
    let bundles = try machines.published()
    let names = bundles.flatMap(\.entries).map(\.name)
    try #require(names.count == 2)
    let body = try #require(bundles.flatMap { $0.bodies.compactMap { $0 } }.first)
    let rule = FaultRule(
      .rename, path: "there/members/bob/inbox", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try machines.receive(bundles) }
    }
    machines.kill()
    let path = [mark == ".kept" ? "in" : "out", TwoMachines.hereName]
    try BridgeFolder(path, of: machines.there.storage).replace(
      1.fileName + mark,
      by: [
        "to": "bob", "N": .string(names[isOther ? 1 : 0].text), "reason": "it is closed",
        "body": .data(Data(body)),
      ])
    _ = try machines.opened()
    #expect(try machines.names("there/members/bob/inbox").count == (isOther ? 2 : 1))
  }

  /// A file of the bridge is damaged, and there is no other copy of the file.
  @Test(arguments: [
    "place.plist", "in/000000000000000a/cursor.plist",
    "in/000000000000000a/0000000000000001.kept", "out/000000000000000a/0000000000000001.refused",
    "out/000000000000000a/flow.plist",
  ])
  func aContainerWithADamagedFileBecomesANewMachine(_ file: String) throws {
    let storage = machines.there.storage
    let bridge = try BridgeFolder(of: storage)
    let former = try Place.open(bridge, group: "g", storage.options.environment).machine
    try machines.send(1)
    try machines.settle()
    machines.kill()
    let path = file.split(separator: "/").map { String($0) }
    let bytes: [UInt8] = [1]
    try BridgeFolder(Array(path.dropLast()), of: storage).write(path[path.count - 1], bytes)
    _ = try MachineRejoin.run(machines.there, drops: false)
    let place = try Place.open(bridge, group: "g", storage.options.environment)
    #expect(place.machine != former)
    let side = try TwoMachines.Side(
      place.machine, TwoMachines.hereName, machines.folder.path + "/there")
    #expect(try side.receive([]) == [])
    #expect(try machines.names("there/members/bob/inbox").count == 1)
  }

  /// A power cut would bring the claims back, and the next machine would send the messages twice.
  @Test func whatWasInTransitIsReturnedDurablyBeforeTheMachineChanges() throws {
    try machines.send(1)
    _ = try machines.published()
    machines.kill()
    let storage = machines.here.storage
    let folder = try BridgeFolder(of: storage)
    let place = try Place.open(folder, group: "g", storage.options.environment)
    let rule = FaultRule(
      .fsync, path: "here/members/bob/claimed", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) {
        _ = try MachineRejoin.run(machines.here, drops: false)
      }
    }
    #expect(try Place.read(folder)?.machine == place.machine)
    #expect(try MachineRejoin.run(machines.here, drops: false) == 0)
    #expect(try Place.read(folder)?.machine != place.machine)
    #expect(try machines.names("here/members/bob/inbox").count == 1)
  }

  /// What is received and not delivered yet stays when the container becomes another machine.
  @Test func aSoundCursorOutlivesItsMachine() throws {
    let storage = machines.there.storage
    let place = try Place.open(
      BridgeFolder(of: storage), group: "g", storage.options.environment)
    try machines.send(1)
    try machines.settle()
    machines.kill()
    _ = try MachineRejoin.run(machines.there, drops: false)
    #expect(try Place.read(BridgeFolder(of: storage))?.machine != place.machine)
    let files = try machines.names("there/bridge/in/\(TwoMachines.hereName)")
    #expect(files.contains(InFlow.cursorName))
  }

  /// The name cannot be given to programs here while a message is in transit; then it goes back.
  @Test func aHomeThatComesBackToItsMachineIsCarriedForAgain() throws {
    try machines.send(1) { $0.wantsOutcome = true }
    #expect(try machines.published().count == 1)
    let residents = try machines.opened().here.residents
    let error = #expect(throws: WormholeError.self) { try residents.release(.member("bob")) }
    #expect(error?.code == .conflict && error?.reason == "1 messages to it are in transit")
    try machines.send(2)
    #expect(try machines.published() == [], "the message waits for a program of this machine")
    try residents.move("bob", to: TwoMachines.thereName)
    #expect(try machines.published().flatMap(\.entries).map(\.kind) == [.message])
  }

  /// A confirmation may be published twice, and the second may come after later ones.
  @Test func anOldConfirmationIsNoConflict() throws {
    try machines.send(1) { $0.wantsOutcome = false }
    try machines.settle()
    let old = try #require(try machines.opened().there.incoming.position)
    #expect(old.number == 1)
    try machines.send(2) { $0.wantsOutcome = false }
    try machines.send(3) { $0.wantsOutcome = false }
    try machines.settle()
    let out = try machines.opened().here.out
    #expect(throws: Never.self) { try out.confirm(old) }
    #expect(out.confirmed == 3 && out.next == 4)
  }

  /// Without the record, a power cut would send a settled message again.
  @Test func aRecordStaysUntilItsEffectsAreDurable() throws {
    try machines.send(1) { $0.wantsOutcome = false }
    try machines.receive(machines.published())
    let sides = try machines.opened()
    try sides.here.out.confirm(try #require(sides.there.incoming.position))
    #expect(try machines.names("here/members/bob/claimed") == [])
    let files = folder(to: TwoMachines.thereName)
    let rule = FaultRule(
      .fsync, path: "here/members/bob", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try sides.here.out.finish() }
    }
    #expect(try machines.names(files) == ["0000000000000001", "flow.plist"])
    try sides.here.out.finish()
    #expect(try machines.names(files) == ["flow.plist"])
  }

  @Test func aBundleHasAsManyMessagesAsFit() throws {
    var options = SendOptions()
    options.durability = .process
    let text = String(repeating: "x", count: 100_000)
    for _ in 0..<3 { try machines.sender.peer("bob").send(text, options) }
    let here = try machines.opened().here
    _ = try here.out.collect(from: here.residents.all(on: TwoMachines.thereName))
    // No bundle is published in between, so each one begins with the first message.
    for (size, count) in [(1, 1), (150_000, 1), (250_000, 2), (400_000, 3)] {
      let bundle = try here.out.bundle(generation: 1, size: size, largest: 900 << 10)
      #expect(bundle?.entries.count == count && bundle?.bodies.count == count, "\(size)")
      #expect(bundle?.last == count)
    }
  }
}
