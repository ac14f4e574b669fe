import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// Messages that cannot be delivered on the other machine, without servers.
///
/// The tests may run as root, which every directory admits: calls fail by fault rules.
@Suite(.blocking) struct RefusalTests {
  private let machines: TwoMachines

  init() throws { machines = try TwoMachines() }

  /// Every call on the directory of a member that another user has closed, or on what is in it.
  private static func closed(_ name: String) -> [FaultRule] {
    [FaultRule(.open, path: "there/members/\(name)", persistent: true, .fail(.accessDenied))]
  }

  private func sendToBobAndCarol() throws -> [Sent] {
    _ = try machines.opened().here.residents.proxy(
      of: .member("carol"), on: TwoMachines.thereName)
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = false
    let plain = try machines.sender.peer("bob").send(1, options)
    options.wantsOutcome = true
    return [
      plain, try machines.sender.peer("bob").send(2, options),
      try machines.sender.peer("carol").send(3, options),
    ]
  }

  private func kept() throws -> [String] {
    try machines.names("there/bridge/in/\(TwoMachines.hereName)").filter { $0.hasSuffix(".kept") }
  }

  /// The owner of a directory may close it at any time: the flow to all others continues.
  @Test func aClosedMemberHoldsUpNoOther() throws {
    try machines.there.join(as: "bob").leave()
    let sent = try sendToBobAndCarol()
    try FaultPoints.with(Self.closed("bob")) {
      try machines.settle()
      try machines.settle()
    }
    let end = sent[1].waitForEnd(until: .now + patience)
    guard case .deadLettered(let reason) = end else {
      Issue.record("ended as \(String(describing: end))")
      return
    }
    #expect(reason.contains("permission") || reason.contains("Permission"), "\(reason)")
    #expect(try machines.names("there/members/carol/inbox").count == 1)
    // The sender of the first message wants no outcome, and has removed it.
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try kept().count == 1)
    // Once the directory is open again, the message is a dead letter that can be retried.
    machines.kill()
    _ = try machines.opened()
    #expect(try kept() == [])
    #expect(try machines.there.peer("bob").deadLetters.map(\.id) == [sent[0].id])
  }

  /// The sender has the message until this machine can keep or deliver it.
  @Test func aMessageForWhichThereIsNoRoomIsNotConfirmed() throws {
    try machines.there.join(as: "bob").leave()
    try machines.send(1) { $0.wantsOutcome = false }
    let bundles = try machines.published()
    let incoming = try machines.opened().there.incoming
    try incoming.begin(bundles[0].flow)
    let folder = try BridgeFolder(["in", TwoMachines.hereName], of: machines.there.storage)
    let content: [UInt8] = [1]
    for number in 1...KeptMessages.most {
      try folder.write(number.fileName(of: "f") + KeptMessages.mark, content, sync: false)
    }
    var refusal: WormholeError?
    try FaultPoints.with(Self.closed("bob")) {
      refusal = try failure { _ = try machines.receive(bundles) }
    }
    #expect(refusal?.code == .full)
    #expect(incoming.position?.number == 0)
    // The directory is open again.
    try machines.settle()
    #expect(try machines.names("there/members/bob/inbox").count == 1)
  }

  /// The directory is closed between the cursor and the delivery.
  @Test(arguments: [false, true])
  func aMemberThatIsClosedAfterStagingHoldsUpNoOther(_ isKilled: Bool) throws {
    let sent = try sendToBobAndCarol()
    let bundles = try machines.published()
    let rename = FaultRule(
      .rename, path: "there/members/bob/inbox", persistent: true, .fail(.accessDenied))
    try machines.opened().there.incoming.begin(bundles[0].flow)
    try FaultPoints.with([rename]) { try machines.receive(bundles) }
    if isKilled { machines.kill() }
    try machines.settle()
    try machines.settle()
    guard case .deadLettered? = sent[1].waitForEnd(until: .now + patience) else {
      Issue.record("the message is not refused")
      return
    }
    #expect(try machines.names("there/members/bob/inbox") == [])
    #expect(try machines.names("there/members/carol/inbox").count == 1)
    #expect(try machines.there.peer("bob").deadLetters.map(\.id) == [sent[0].id])
    let files = try machines.names("there/bridge/in/\(TwoMachines.hereName)")
    #expect(files == ["cursor.plist"], "nothing is staged or kept: \(files)")
  }

  @Test func aRequestToCancelForAClosedMemberHoldsUpNoOther() throws {
    let sent = try sendToBobAndCarol()
    try machines.settle()
    #expect(try sent[1].cancel() == .requested)
    machines.kill()
    try FaultPoints.with(Self.closed("bob")) { try machines.settle() }
    #expect(try sent[1].state == .inTransit)
    let receiving = try machines.receive(2)
    #expect(receiving == [1, 2])
  }

  /// At its start, a bridge lists all members.
  @Test func aBridgeStartsBesideAClosedMember() throws {
    try machines.here.join(as: "carol").leave()
    machines.kill()
    let rule = FaultRule(
      .open, path: "here/members/carol", persistent: true, .fail(.accessDenied))
    try FaultPoints.with([rule]) { _ = try machines.opened() }
    let proxies = try machines.opened().here.residents.all(on: TwoMachines.thereName)
    #expect(proxies.map(\.name) == ["bob"])
  }

  /// Without a wanted outcome, the sender removes the message when it is confirmed.
  @Test func aRefusedMessageWithoutAnOutcomeIsADeadLetterOfItsReceiver() throws {
    let namesake = try machines.there.join(as: "al")
    let sent = try machines.send(1) { $0.wantsOutcome = false }
    try machines.settle()
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("there/members/bob/inbox") == [])
    let letters = try machines.there.peer("bob").deadLetters
    #expect(letters.map(\.id) == [sent.id])
    #expect(letters.first?.reason == "a process of this machine has the name")
    withExtendedLifetime(namesake) {}
  }

  /// A machine may not send under the name of a member whose home is another one.
  @Test(arguments: [true, false])
  func theNameOfASenderIsCheckedAgainstItsHome(_ wantsOutcome: Bool) throws {
    let residents = try machines.opened().there.residents
    residents.home = { $0 == "al" ? "000000000000000c" : nil }
    try machines.send(1) { $0.wantsOutcome = wantsOutcome }
    try machines.settle()
    #expect(try machines.names("there/members/bob/inbox") == [])
    residents.home = { $0 == "al" ? TwoMachines.hereName : nil }
    try machines.send(2) { $0.wantsOutcome = wantsOutcome }
    try machines.settle()
    #expect(try machines.names("there/members/bob/inbox").count == 1)
    // No proxy is made for nothing.
    #expect(try machines.names("there/members").contains("al") == wantsOutcome)
  }

  /// The bridge of the former home is killed after it has given the return a number.
  ///
  /// A second return would arrive while the message is in transit to the new home, which would get
  /// the message twice.
  @Test func aMessageIsReturnedOnceAlthoughTheBridgeIsKilled() throws {
    let third = "000000000000000c"
    try machines.send(1) { $0.wantsOutcome = true }
    let bundles = try machines.published()
    try machines.opened().there.residents.move("bob", to: third)
    try machines.receive(bundles)
    #expect(try machines.opened().there.published().flatMap(\.entries).map(\.kind) == [.returned])
    machines.kill()
    let here = try machines.opened().here
    here.residents.formerHomes = { _ in [TwoMachines.thereName] }
    try here.residents.move("bob", to: third)
    try machines.settle()
    #expect(try machines.names("here/members/bob/inbox").count == 1)
    let onward = try OutFlow(to: third, here.residents)
    _ = try onward.collect(from: here.residents.all(on: third))
    #expect(try machines.names("here/members/bob/claimed").count == 1)
    try machines.settle()
    #expect(try machines.opened().there.published() == [])
    #expect(try machines.names("here/members/bob/inbox") == [])
    #expect(try machines.names("here/members/bob/claimed").count == 1)
  }

  /// What another machine states is no proof that a copy of this container exists.
  @Test func aBundleOnTheServersShowsACopy() throws {
    try machines.send(1)
    try machines.settle()
    let copy = try machines.copy()
    try machines.send(2)
    let own = try machines.published()
    let out = try machines.opened().here.out
    #expect(!out.isForeign(own[0]))
    let lie = FlowPosition(flow: out.flow, number: 1 << 40, chain: own[0].before)
    #expect(throws: FlowConflict.self) { try out.confirm(lie) }
    try copy.container.peer("bob").send(3)
    let foreign = try copy.published()
    #expect(out.isForeign(foreign[0]))
    try copy.container.peer("bob").send(4)
    #expect(try copy.published().allSatisfy { out.isForeign($0) })
  }
}
