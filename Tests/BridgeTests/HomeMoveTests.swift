import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// `wormhole bridge move` and `wormhole bridge evict`, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct HomeMoveTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  private func options(_ wantsOutcome: Bool) -> SendOptions {
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = wantsOutcome
    return options
  }

  private func command(
    _ machine: BridgedMachine, _ words: [String], environment: [String] = []
  ) throws -> ProcessOutcome {
    var arguments = machine.arguments()
    arguments.insert(contentsOf: words, at: 3)
    return try Running(Programs.built("wormhole"), arguments, environment: environment)
      .outcome(within: .seconds(90))
  }

  private func name(_ machine: BridgedMachine) throws -> String {
    try BridgeStatus.identity(of: machine.container).machine
  }

  private func isProxy(_ name: String, _ machine: BridgedMachine) throws -> Bool {
    try Carrier(machine.container).proxies().contains { $0.name == name }
  }

  /// Messages that wait at the old home arrive at the new one, and their outcomes come back.
  @Test func messagesFollowAMovedHome() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let third = try BridgedMachine(machines.folder.path + "/third", machines.server)
    try third.start()
    let al = try there.container.join(as: "al")
    let dora = try third.container.join(as: "dora")
    let carol = try here.container.join(as: "carol")
    try here.container.join(as: "bob").leave()
    for machine in [there, third] {
      try eventually("bob is known", within: .seconds(60)) { try isProxy("bob", machine) }
    }
    let sent = [
      try al.peer("bob").send(1, options(true)), try dora.peer("bob").send(2, options(true)),
      try carol.peer("bob").send(3, options(true)),
    ]
    _ = try [al, dora, carol].map { try $0.peer("bob").send(4, options(false)) }
    try eventually("all messages wait at the old home", within: .seconds(60)) {
      try here.waiting("bob") == 6
    }
    let running = try here.container.join(as: "bob")
    let refused = try command(here, ["move", "bob", "--to", name(there)])
    #expect(refused.status != .exited(0) && refused.errors.contains("has the name"))
    running.leave()
    let other = try command(there, ["move", "bob", "--to", name(there)])
    let home = try name(here)
    #expect(other.status != .exited(0) && other.errors.contains(home), "\(other.errors)")
    let unknown = try command(here, ["move", "bob", "--to", "0123456789abcdef"])
    #expect(unknown.status == .exited(1), "\(unknown.errors)")
    // Killed after the change of the record, the command is run again.
    let killed = try command(
      here, ["move", "bob", "--to", name(there)],
      environment: ["WORMHOLE_FAULTS=rename~members/bob@1:before:kill"])
    let again = try command(here, ["move", "bob", "--to", name(there)])
    #expect(again.status == .exited(0), "\(killed) \(again.errors)")
    let heard = Heard<Int>()
    try eventually("the name is free on the new home", within: .seconds(60)) {
      try !isProxy("bob", there)
    }
    let bob = try there.container.join(as: "bob")
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    do {
      try heard.wait("six messages", within: .seconds(60)) { $0.count >= 6 }
    } catch {
      Issue.record("\(heard.all) \(try machines.report()) \(try third.status())")
    }
    #expect(heard.all.sorted() == [1, 2, 3, 4, 4, 4])
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(60)) == .delivered) }
    let late = try dora.peer("bob").send(5, options(true))
    #expect(late.waitForEnd(until: .now + .seconds(60)) == .delivered)
    let error = #expect(throws: WormholeError.self) { _ = try here.container.join(as: "bob") }
    #expect(error?.code == .nameTaken)
    receiving.stop()
  }

  /// A machine is lost; the command is killed before each of its sends, and run again.
  @Test func aLostMachineIsGivenUp() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    for name in ["bob", "carol"] { try there.container.join(as: name).leave() }
    try eventually("the names are known", within: .seconds(60)) {
      try isProxy("bob", here) && isProxy("carol", here)
    }
    let lost = try name(there)
    let alive = try command(here, ["evict", lost])
    #expect(alive.status != .exited(0) && alive.errors.contains("answers"), "\(alive.errors)")
    try there.kill()
    let sent = try (1...3).map { try al.peer("bob").send($0, options(true)) }
    try eventually("the messages are in transit", within: .seconds(60)) {
      try sent.allSatisfy { try $0.state == .inTransit }
    }
    var isDone = false
    for call in 1...60 where !isDone {
      let outcome = try command(
        here, ["evict", lost], environment: ["WORMHOLE_FAULTS=send@\(call):before:kill"])
      isDone = outcome.status == .exited(0)
      #expect(isDone || outcome.status == .signalled(9), "\(outcome)")
    }
    #expect(isDone)
    try eventually("the names are free", within: .seconds(60)) {
      try !isProxy("bob", here) && !isProxy("carol", here)
    }
    // A former home may hand on messages of other machines.
    let record = try machines.server.connect()
      .request("$JS.hub.API.DIRECT.GET.WHS_0.whs.0.g.m.carol")
    #expect(record?.contains(lost) == true, "\(record ?? "no record")")
    let heard = Heard<Int>()
    let bob = try here.container.join(as: "bob")
    let receiving = try bob.receive(Int.self) { value, message in
      heard.add(message.isRedelivered ? value : -value)
    }
    try heard.wait("three messages", within: .seconds(60)) { $0.count == 3 }
    #expect(heard.all == [1, 2, 3], "each is marked as redelivered")
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(60)) == .delivered) }
    // The machine reappears.
    let late = try there.startBridge().outcome(within: .seconds(60))
    #expect(late.status == .exited(78) && late.errors.contains("given up"), "\(late.errors)")
    #expect(try there.rejoin().status == .exited(0))
    try there.start()
    try there.waitUntilRunning("bob")
    receiving.stop()
  }

  @Test func messagesToALostMachineBecomeDeadLetters() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    try there.container.join(as: "bob").leave()
    try here.container.join(as: "dan").leave()
    try eventually("the names are known", within: .seconds(60)) {
      try isProxy("bob", here) && isProxy("dan", there)
    }
    try there.kill()
    let sent = try al.peer("bob").send(1, options(true))
    try al.peer("bob").send(2, options(false))
    let outcome = try command(here, ["evict", name(there), "--drop"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    guard case .deadLettered(let reason) = sent.waitForEnd(until: .now + .seconds(60)) else {
      Issue.record("\(try machines.report())")
      return
    }
    #expect(reason.contains("given up"))
    try eventually("both are dead letters", within: .seconds(60)) {
      try here.container.peer("bob").deadLetters.count == 2
    }
    // A home there would have no bridge that receives its messages.
    let lost = try name(there)
    let move = try command(here, ["move", "dan", "--to", lost])
    #expect(move.status == .exited(1), "\(move.errors)")
    #expect(move.errors.contains("the group has no machine \(lost)"), "\(move.errors)")
    try here.container.join(as: "dan").leave()
  }

  // MARK: Files

  private func send(_ bytes: Int, from al: Member) throws -> Sent {
    let path = try #require(machines).folder.path + "/file"
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.writeFully([UInt8](repeating: 7, count: bytes))
    return try al.peer("bob").send(file: path, metadata: 1, options(true))
  }

  /// Receives the message with the file as a program of the machine; it must not be marked.
  private func receiveFile(_ bytes: Int, _ machine: BridgedMachine) throws {
    let heard = Heard<String>()
    let bob = try machine.container.join(as: "bob")
    let receiving = try bob.receive(Int.self) { _, message in
      let file = message.file.flatMap { try? Descriptor.open(path: $0.path, [.readOnly]) }
      let content = (try? file?.contents()) ?? []
      heard.add("\(content.count) \(message.isRedelivered)")
    }
    try heard.wait("the file", within: .seconds(60)) { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == ["\(bytes) false"])
  }

  /// The old home returns the message, and removes the file.
  @Test func aFileFollowsAMovedHome() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try there.container.join(as: "al")
    try here.container.join(as: "bob").leave()
    try eventually("bob is known", within: .seconds(60)) { try isProxy("bob", there) }
    let sent = try send(3 << 20, from: al)
    try eventually("the file waits at the old home", within: .seconds(60)) {
      try here.waiting("bob") == 1
    }
    let outcome = try command(here, ["move", "bob", "--to", name(there)])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    try eventually("the name is free on the new home", within: .seconds(60)) {
      try !isProxy("bob", there)
    }
    try receiveFile(3 << 20, there)
    #expect(sent.waitForEnd(until: .now + .seconds(60)) == .delivered)
    try eventually("no file is left", within: .seconds(60)) {
      try here.names("members/bob/files").filter { $0 != "room" }.isEmpty
    }
  }

  /// Of the file, only the pieces of one window have left: the machine cannot have delivered it.
  @Test func aFileOnItsWayToALostMachineIsReceivedHere() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    try there.container.join(as: "bob").leave()
    try eventually("the name is known", within: .seconds(60)) { try isProxy("bob", here) }
    try there.kill()
    let lost = try name(there)
    let sent = try send(6 << 20, from: al)
    try eventually("pieces have numbers", within: .seconds(60)) {
      (try? here.names("bridge/out/\(lost)").count) ?? 0 > 1
    }
    let outcome = try command(here, ["evict", lost])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    try eventually("the name is free", within: .seconds(60)) { try !isProxy("bob", here) }
    try receiveFile(6 << 20, here)
    #expect(sent.waitForEnd(until: .now + .seconds(60)) == .delivered)
    #expect(try here.names("bridge/out/\(lost)") == [])
  }

  @Test func actionsWithoutANameAreRefused() throws {
    guard let machines else { return }
    for words in [["move"], ["evict"], ["evict", "x"], ["move", "bob"], ["status", "bob"]] {
      let outcome = try command(machines.here, words)
      #expect(outcome.status == .exited(64), "\(words) \(outcome)")
    }
  }
}

extension BridgedMachine {
  fileprivate func names(_ directory: String) throws -> [String] {
    try Descriptor.open(path: path + "/" + directory, [.readOnly, .directory]).names()
  }

  /// How many messages wait for a member.
  fileprivate func waiting(_ name: String) throws -> Int {
    try names("members/\(name)/inbox").count
  }
}
