import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Large messages and files between two machines, without servers: they travel in pieces.
@Suite(.blocking) struct PieceTests {
  private let machines: TwoMachines
  private static let piece = FlowPiece.bytes

  init() throws { machines = try TwoMachines() }

  /// A message as its receiver got it.
  private struct Arrival: Equatable, Sendable {
    let number: Int
    let bytes: [UInt8]?

    init(_ number: Int, _ bytes: [UInt8]? = nil) { (self.number, self.bytes) = (number, bytes) }
  }

  /// Sends a file with such bytes.
  @discardableResult
  private static func send(
    _ number: Int, _ bytes: [UInt8], to member: String = "bob", _ machines: TwoMachines
  ) throws -> Sent {
    let path = machines.folder.path + "/file"
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.writeFully(bytes)
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = true
    return try machines.sender.peer(member).send(file: path, metadata: number, options)
  }

  private static func bytes(_ count: Int) -> [UInt8] {
    var random = SeededRandom(seed: UInt64(count))
    return random.bytes(count)
  }

  /// Receives so many messages on the other machine, and acknowledges them.
  private static func receive(_ count: Int, _ machines: TwoMachines) throws -> [Arrival] {
    let bob = try machines.there.join(as: "bob")
    defer { bob.leave() }
    let heard = Heard<Arrival>()
    let receiving = try bob.receive(Int.self) { value, message in
      heard.add(Arrival(value, message.file.flatMap { Self.contents($0.path) }))
    }
    try heard.wait("\(count) messages", within: .seconds(60)) { $0.count >= count }
    receiving.stop()
    return heard.all
  }

  /// The bytes of a file; nil for a missing file, which is no empty one.
  private static func contents(_ path: String) -> [UInt8]? {
    try? Descriptor.open(path: path, [.readOnly]).contents()
  }

  /// The files of messages, without the account of the inbox.
  private static func files(_ side: String, _ machines: TwoMachines) throws -> [String] {
    try machines.names("\(side)/members/bob/files").filter { $0 != "room" }
  }

  /// Nothing of what has arrived, or was settled, is left on either machine.
  private static func checkNothingIsLeft(_ machines: TwoMachines, _ place: String = "") throws {
    #expect(try machines.names("here/members/bob/claimed") == [], "\(place)")
    for side in ["here", "there"] {
      #expect(try files(side, machines) == [], "\(place)")
    }
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"],
      "\(place)")
  }

  @Test func filesArriveWholeAndInOrder() throws {
    let sizes = [0, 1, Self.piece - 1, Self.piece, 3 * Self.piece + 5]
    var sent: [Sent] = []
    for (number, size) in sizes.enumerated() {
      sent.append(try Self.send(number, Self.bytes(size), machines))
    }
    try machines.send(sizes.count)
    try machines.settle()
    let wanted = sizes.enumerated().map { Arrival($0, Self.bytes($1)) } + [Arrival(sizes.count)]
    #expect(try Self.receive(wanted.count, machines) == wanted)
    try machines.settle()
    for one in sent { #expect(one.waitForEnd(until: .now + patience) == .delivered) }
    try Self.checkNothingIsLeft(machines)
  }

  @Test func aMessageThatIsLargerThanABundleArrivesWhole() throws {
    let text = String(repeating: "0123456789", count: 200_000)
    try machines.sender.peer("bob").send(text, SendOptions())
    try machines.settle()
    let bob = try machines.there.join(as: "bob")
    let heard = Heard<String>()
    let receiving = try bob.receive(String.self) { text, _ in heard.add(text) }
    try heard.wait("the message", within: .seconds(60)) { $0.count == 1 }
    receiving.stop()
    #expect(heard.all == [text])
    try machines.settle()
    try Self.checkNothingIsLeft(machines)
  }

  /// A file of any size takes a part of the flow only, and one member's messages keep their order.
  @Test func messagesToOthersGoOnBetweenPieces() throws {
    _ = try machines.opened().here.residents.proxy(of: .member("eve"), on: TwoMachines.thereName)
    let file = Self.bytes(40 * Self.piece)
    try Self.send(1, file, machines)
    try machines.send(2)
    try Self.send(3, file, to: "eve", machines)
    try machines.pump()
    try machines.sender.peer("eve").send(4)
    _ = try machines.opened().here.residents.proxy(of: .member("dan"), on: TwoMachines.thereName)
    try machines.sender.peer("dan").send(5)
    try machines.pump()
    #expect(try machines.names("there/members/dan/inbox").count == 1)
    for member in ["bob", "eve"] {
      #expect(try machines.names("there/members/\(member)/inbox") == [])
    }
    // Both files are under way, and neither waits for the other one.
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)").count == 3)
    try machines.settle()
    #expect(try machines.names("there/members/eve/inbox").count == 2)
    #expect(try Self.receive(2, machines) == [Arrival(1, file), Arrival(2)])
  }

  @Test(arguments: 0..<4) func aWireThatLosesAndRepeatsPieces(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    machines.wire = { _ in Int.random(in: 0...2, using: &random) }
    let file = Self.bytes(9 * Self.piece + 1)
    for number in 0..<3 {
      try Self.send(number, file, machines)
      try machines.pump()
      if seed.isMultiple(of: 2) { machines.kill() }
    }
    try machines.settle()
    #expect(try Self.receive(3, machines) == (0..<3).map { Arrival($0, file) })
    try machines.settle()
    try Self.checkNothingIsLeft(machines)
  }

  // MARK: Changes

  @Test func aFileIsCancelledWhileItIsUnderWay() throws {
    let sent = try Self.send(1, Self.bytes(40 * Self.piece), machines)
    try machines.pump()
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)").count == 2)
    #expect(try sent.cancel() == .cancelled)
    try machines.send(2)
    try machines.settle()
    #expect(try Self.receive(1, machines) == [Arrival(2)])
    try machines.settle()
    try Self.checkNothingIsLeft(machines)
  }

  /// As on one machine, the receiver's program finds a file that is not the one that was sent.
  @Test(arguments: ["remove", "truncate", "change"])
  func aFileThatIsChangedOnItsWayIsADeadLetter(_ change: String) throws {
    let sent = try Self.send(1, Self.bytes(40 * Self.piece), machines)
    try machines.pump()
    let name = try #require(try Self.files("here", machines).first)
    let path = "\(machines.folder.path)/here/members/bob/files/\(name)"
    switch change {
    case "remove":
      let files = "\(machines.folder.path)/here/members/bob/files"
      try Descriptor.open(path: files, [.readOnly, .directory]).unlink(name)
    case "truncate": try Descriptor.open(path: path, [.writeOnly]).truncate(to: 30 * Self.piece)
    default:
      let file = try Descriptor.open(path: path, [.writeOnly])
      let zeros = [UInt8](repeating: 0, count: 9)
      try file.writeFully(zeros.span.bytes, at: 39 * Self.piece)
    }
    try machines.send(2)
    try machines.settle()
    #expect(try Self.receive(1, machines) == [Arrival(2)])
    try machines.settle()
    guard case .deadLettered = sent.waitForEnd(until: .now + patience) else {
      Issue.record("\(String(describing: try? sent.state))")
      return
    }
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
  }

  /// Nothing is confirmed that the disk does not take; the transfer goes on when there is space.
  @Test(arguments: [Call.pwrite, .fsync]) func aFullDiskStopsATransferForATime(_ call: Call) throws
  {
    let file = Self.bytes(30 * Self.piece)
    try Self.send(1, file, machines)
    try machines.pump()
    let before = try #require(try machines.opened().there.incoming.position).number
    #expect(before > 0)
    FaultPoints.with([FaultRule(call, path: ",f", persistent: true, .fail(.noSpace))]) {
      #expect(throws: WormholeError.self) { try machines.pump() }
    }
    machines.kill()
    #expect(try machines.opened().there.incoming.position?.number == before)
    try machines.settle()
    #expect(try Self.receive(1, machines) == [Arrival(1, file)])
  }

  /// The other machine says so by the first piece, and the letter stays where it can be retried.
  @Test func aMessageThatIsTooLargeForTheOtherContainerIsRefusedEarly() throws {
    machines.thereOptions.maximumValueBytes = 1 << 20
    machines.kill()
    let text = String(repeating: "x", count: 40 * Self.piece)
    var options = SendOptions()
    options.wantsOutcome = true
    let sent = try machines.sender.peer("bob").send(text, options)
    try machines.settle()
    let end = sent.waitForEnd(until: .now + patience)
    guard case .deadLettered(let reason) = end else {
      Issue.record("\(String(describing: end))")
      return
    }
    #expect(reason.hasSuffix("and the container takes 1048576 at most"))
    #expect(try machines.opened().here.out.next < 30)
    #expect(try machines.names("here/members/bob/dead").count == 2)
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
  }

  /// A sender that never ends what it begins fills no more than a few files.
  @Test func aMachineMayHaveFewMessagesUnderWay() throws {
    for number in 0..<20 {
      let member = "m\(number)"
      _ = try machines.opened().here.residents.proxy(of: .member(member), on: TwoMachines.thereName)
      try Self.send(number, Self.bytes(9 * Self.piece), to: member, machines)
    }
    try machines.pump()
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)").count <= 9)
    try machines.settle()
    for number in 0..<20 {
      #expect(try machines.names("there/members/m\(number)/inbox").count == 1)
    }
  }

  // MARK: Homes

  private static let third = "000000000000000c"

  /// A file of which only some pieces have left goes to the present home from the first one on.
  @Test(arguments: [false, true]) func aHomeMovesWhileAFileIsUnderWay(_ isKilled: Bool) throws {
    let file = Self.bytes(40 * Self.piece)
    let sent = try Self.send(1, file, machines)
    try machines.send(2)
    try machines.pump()
    #expect(try machines.names("there/bridge/in/\(TwoMachines.hereName)").count == 2)
    try machines.opened().here.residents.move("bob", to: Self.third)
    if isKilled { machines.kill() }
    try machines.settle()
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("here/members/bob/inbox").count == 2)
    try machines.opened().here.residents.move("bob", to: TwoMachines.thereName)
    try machines.settle()
    #expect(try Self.receive(2, machines) == [Arrival(1, file), Arrival(2)])
    try machines.settle()
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    try Self.checkNothingIsLeft(machines)
  }

  /// Numbers keep their meaning, also if the bridge is killed after a move: the old home answers.
  @Test func aHomeMovesWhenAFileHasItsNumbers() throws {
    let file = Self.bytes(3 * Self.piece)
    let sent = try Self.send(1, file, machines)
    _ = try machines.published()
    try machines.opened().here.residents.move("bob", to: Self.third)
    machines.kill()
    let here = try machines.opened().here
    here.residents.formerHomes = { _ in [TwoMachines.thereName] }
    try machines.settle()
    #expect(try Self.receive(1, machines) == [Arrival(1, file)])
    try machines.settle()
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    try Self.checkNothingIsLeft(machines)
  }

  /// The old home returns a file that has arrived whole, and keeps nothing of it.
  @Test func aFileThatHasArrivedAtTheOldHomeComesBack() throws {
    let (here, there) = try machines.opened()
    here.incoming.isFree = { [out = here.out] in try out.isFree($0) }
    try there.residents.move("bob", to: Self.third)
    try Self.send(1, Self.bytes(3 * Self.piece), machines)
    try machines.pump()
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
    #expect(try Self.files("there", machines) == [])
    #expect(try machines.names("here/members/bob/claimed") == [])
    #expect(try machines.names("here/members/bob/inbox").count == 1)
    #expect(try Self.files("here", machines).count == 1)
    try here.residents.move("bob", to: Self.third)
    let onward = try OutFlow(to: Self.third, here.residents)
    _ = try onward.collect(from: here.residents.all(on: Self.third))
    let bundle = try onward.bundle(generation: 1, size: 400 << 10, largest: 900 << 10)
    #expect(bundle?.entries.first?.kind == .piece(FlowPiece(.file, 0, of: 3 * Self.piece)))
  }

  // MARK: Deaths

  /// The bridges are killed before each of their calls, one after the other, or the call fails.
  @Test(.notSanitized("one call after the other"), arguments: [true, false])
  func whicheverCallOfATransferIsTheLast(_ isKilled: Bool) throws {
    let step = TestRun.isLong ? 1 : 61
    var call = 1 + Int(TestRun.seed % UInt64(step))
    while try survives(call, isKilled) { call += step }
    #expect(call > 100, "only \(call) calls")
  }

  /// Returns false if the bridges make fewer calls.
  private func survives(_ call: Int, _ isKilled: Bool) throws -> Bool {
    let machines = try TwoMachines()
    let files = [Self.bytes(18 * Self.piece + 3), Self.bytes(7)]
    let sent = try files.enumerated().map { try Self.send($0, $1, machines) }
    try machines.send(2)
    let rule = FaultRule(nil, number: call, persistent: isKilled, .fail(.inputOutput))
    var failure: (any Error)?
    let calls = FaultPoints.with([rule]) {
      do { for _ in 0..<4 { try machines.pump() } } catch { failure = error }
    }
    if failure != nil || isKilled { machines.kill() }
    try machines.settle()
    // A sweeper looks for files without a message whenever a member joins.
    let wanted = files.enumerated().map { Arrival($0, $1) } + [Arrival(2)]
    #expect(try Self.receive(3, machines) == wanted, "call \(call)")
    try machines.settle()
    for one in sent {
      #expect(one.waitForEnd(until: .now + patience) == .delivered, "call \(call)")
    }
    try Self.checkNothingIsLeft(machines, "call \(call)")
    return calls.count >= rule.number
  }

  /// Between a file and its message, a member joins whose sweeper finds no message for the file.
  @Test func aFileIsSweptByNobodyBeforeItsMessageArrives() throws {
    let file = Self.bytes(100)
    try Self.send(1, file, machines)
    let bundles = try machines.published()
    try machines.opened().there.incoming.begin(bundles[0].flow)
    // The bridge is killed when it has attached the file.
    FaultPoints.with([
      FaultRule(.rename, path: "0000000000000002", persistent: true, .fail(.inputOutput))
    ]) {
      #expect(throws: WormholeError.self) { try machines.receive(bundles) }
    }
    machines.kill()
    try machines.there.join(as: "bob").leave()
    #expect(try Self.files("there", machines) == [])
    try machines.settle()
    #expect(try Self.receive(1, machines) == [Arrival(1, file)])
  }
}
