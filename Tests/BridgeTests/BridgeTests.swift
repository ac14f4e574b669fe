import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The command `wormhole bridge` on two machines, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct BridgeTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  private func options(_ adjust: (inout SendOptions) -> Void = { _ in }) -> SendOptions {
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = true
    adjust(&options)
    return options
  }

  @Test func membersAreSeenAndMessagesTravelBothWays() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    try here.waitUntilRunning("bob")
    #expect(try wait { try here.container.peer("bob").profile != nil })
    let profile = try #require(try here.container.peer("bob").profile)
    let own = try there.container.peer("bob").profile
    #expect(profile.machine != nil && profile.incarnation == own?.incarnation)
    let heard = Heard<String>()
    let answers = Heard<String>()
    let receiving = try bob.receive(String.self) { value, message in
      heard.add(value)
      try bob.peer(message.from ?? "").send("heard " + value)
    }
    let listening = try al.receive(String.self) { value, _ in answers.add(value) }
    let sent = try ["one", "two", "three"].map { try al.peer("bob").send($0, options()) }
    try answers.wait("three answers", within: .seconds(60)) { $0.count == 3 }
    #expect(heard.all == ["one", "two", "three"])
    #expect(answers.all == ["heard one", "heard two", "heard three"])
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(60)) == .delivered) }
    receiving.stop()
    listening.stop()
    bob.leave()
    try here.waitUntilRunning("bob", false)
    let error = #expect(throws: WormholeError.self) { _ = try here.container.join(as: "bob") }
    #expect(error?.code == .nameTaken)
  }

  /// A command waits as a guest, which the other machine has never heard of.
  @Test func aCommandWaitsForAnOutcomeOfAnotherMachine() throws {
    guard let machines else { return }
    let bob = try machines.there.container.join(as: "bob")
    let receiving = try bob.receive(String.self) { value, message in
      if value == "bad" { throw Failed() }
    }
    try machines.here.waitUntilRunning("bob")
    for (word, status) in [("good", 0), ("bad", 1)] as [(String, Int32)] {
      let outcome = try Running(
        Programs.built("wormhole"),
        [
          "--container", machines.here.path, "send", word, "--to", "bob", "--wait", "--timeout",
          "60",
        ]
      ).outcome(within: .seconds(90))
      #expect(outcome.status == .exited(status), "\(outcome.errors)")
    }
    receiving.stop()
  }

  private struct Failed: Error {}

  @Test func aBridgeThatIsKilledContinues() throws {
    guard let machines else { return }
    let (al, bob) = (
      try machines.here.container.join(as: "al"), try machines.there.container.join(as: "bob")
    )
    try machines.here.waitUntilRunning("bob")
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    var last: Sent?
    for round in 0..<6 {
      for number in 0..<20 { last = try al.peer("bob").send(round * 20 + number, options()) }
      let machine = round.isMultiple(of: 2) ? machines.here : machines.there
      try machine.kill()
      // A bridge that waits for the lock would be as good.
      try machine.start()
    }
    let end = last?.waitForEnd(until: .now + .seconds(60))
    let report = end == .delivered ? "" : try machines.report()
    #expect(end == .delivered, "\(report)")
    #expect(heard.all == Array(0..<120))
    #expect(try wait { try machines.here.status().contains("start 4") })
    receiving.stop()
  }

  /// The servers acknowledge and lose: the senders have everything that was not confirmed.
  @Test func whatTheServersLoseIsSentAgain() throws {
    guard let machines else { return }
    let al = try machines.here.container.join(as: "al")
    let bob = try machines.there.container.join(as: "bob")
    try machines.here.waitUntilRunning("bob")
    try machines.there.kill()
    let sent = try (0..<5).map { try al.peer("bob").send($0, options()) }
    try machines.here.waitUntilRunning("bob", false)
    let isPublished = try wait { try machines.here.status().contains("0 of 5 confirmed") }
    #expect(isPublished)
    try machines.server.server.kill()
    try machines.server.data.remove()
    try machines.server.server.start()
    try BridgedMachine.setUp(machines.server)
    try machines.there.start()
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(120)) == .delivered) }
    #expect(heard.all == [0, 1, 2, 3, 4])
    receiving.stop()
  }

  /// After a reconnect the bridge reads a record that was stored long before.
  @Test func theClockIsNotReadFromAnOldRecord() throws {
    guard let machines else { return }
    func clock() throws -> Double? {
      let status = try machines.here.status(["--json"])
      return try JSONPropertyList.decode(Array(status.utf8))["clock"]?.doubleValue
    }
    #expect(try wait { try clock() != nil })
    let _: Void? = Monitor(()).wait(until: .now + .seconds(4)) { _ in nil }
    try machines.server.restart()
    let isBack = try wait {
      try machines.server.connect().information.contains("server_id")
        && machines.here.status().contains("serving")
    }
    #expect(isBack)
    // The status is written once a second.
    let _: Void? = Monitor(()).wait(until: .now + .seconds(2)) { _ in nil }
    let offset = try #require(try clock())
    #expect(abs(offset) < 3, "\(offset)")
  }

  private func wait(_ isDone: () throws -> Bool) throws -> Bool {
    try eventually("the condition", within: .seconds(60), isDone)
    return true
  }

  @Test func aSecondBridgeWaitsForTheFirst() throws {
    guard let machines else { return }
    let second = try machines.here.startBridge()
    #expect(try wait { try second.errors.contains("another bridge serves the container") })
    #expect(try !second.errors.contains("carrying"))
    try machines.here.kill()
    #expect(try wait { try second.errors.contains("carrying between machines") })
    try second.child.send(.terminate)
    #expect(try second.outcome(within: .seconds(60)).status == .exited(0))
  }

  @Test func aCopyOfTheContainerIsToldApart() throws {
    guard let machines else { return }
    let copy = machines.folder.path + "/copy"
    #expect(try run("cp", ["-a", machines.here.path, copy]).status == .exited(0))
    let other = try BridgedMachine(copy, machines.server)
    try other.start()
    let first = try #require(machines.here.bridge)
    let end = try first.outcome(within: .seconds(60))
    #expect(end.status == .exited(75), "\(end.errors)")
    #expect(end.errors.contains("another bridge has continued as machine"))
    let again = try machines.here.startBridge().outcome(within: .seconds(60))
    #expect(again.status == .exited(78) && again.errors.contains("copy"), "\(again.errors)")
  }

  /// Both copies have the message in transit.
  ///
  /// The receiver sees the mark of the second one.
  @Test(arguments: [false, true])
  func aCopyBecomesAMachineOfItsOwn(_ drops: Bool) throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let bob = try there.container.join(as: "bob")
    try here.waitUntilRunning("bob")
    try there.kill()
    try here.waitUntilRunning("bob", false)
    // Two machines cannot both be the home of a sender who waits for an outcome.
    try here.container.peer("bob").send(7, options { $0.wantsOutcome = false })
    #expect(try wait { try here.status().contains("0 of 1 confirmed") })
    let copy = machines.folder.path + "/copy"
    #expect(try run("cp", ["-a", here.path, copy]).status == .exited(0))
    let other = try BridgedMachine(copy, machines.server)
    let rejoined = try other.rejoin(drops: drops)
    #expect(rejoined.status == .exited(0) && rejoined.errors.contains(": 1"), "\(rejoined.errors)")
    #expect(try here.rejoin().errors.contains("end the bridge first"))
    try other.start()
    try there.start()
    let heard = Heard<Bool>()
    let receiving = try bob.receive(Int.self) { _, message in heard.add(message.isRedelivered) }
    let expected = drops ? [false] : [false, true]
    try heard.wait("\(expected.count)", within: .seconds(60)) { $0.count == expected.count }
    #expect(heard.all.sorted { !$0 && $1 } == expected)
    receiving.stop()
  }

  @Test func twoMachinesThatJoinOneNameAreAConflict() throws {
    guard let machines else { return }
    let own = try machines.there.container.join(as: "bob")
    try machines.here.waitUntilRunning("bob")
    // On a machine that is cut off, the name is unknown.
    let third = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let other = try third.container.join(as: "bob")
    try third.start()
    #expect(try wait { try third.status().contains("conflict: 'bob'") })
    // Both continue.
    for container in [third.container, machines.there.container] {
      let reachability = try container.peer("bob").reachability
      #expect(reachability == .running)
    }
    withExtendedLifetime(own) {}
    #expect(try machines.here.container.peer("bob").reachability == .running)
    other.leave()
    try third.waitUntilRunning("bob")
    #expect(try wait { try !third.status().contains("conflict") })
  }

  @Test func whatEndsABridgeHasItsExitStatus() throws {
    guard let machines else { return }
    let machine = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let nobody = try machine.startBridge(["--nats", "nats://127.0.0.1:1", "--timeout", "0.5"])
      .outcome(within: .seconds(60))
    #expect(nobody.status == .exited(69) && nobody.errors.contains("nats://127.0.0.1:1"))
    let wrong = machines.folder.path + "/wrong"
    try machines.folder.write("wrong", to: "wrong")
    #expect(try run("chmod", ["644", wrong]).status == .exited(0))
    let open = try machine.startBridge(["--token-file", wrong]).outcome(within: .seconds(60))
    #expect(open.status == .exited(77) && open.errors.contains("0600"), "\(open.errors)")
    #expect(try run("chmod", ["600", wrong]).status == .exited(0))
    let refused = try machine.startBridge(["--token-file", wrong]).outcome(within: .seconds(60))
    #expect(refused.status == .exited(77), "\(refused.errors)")
    let elsewhere = try machine.startBridge(["--nats", "nats://hub.example:4222"])
      .outcome(within: .seconds(60))
    #expect(elsewhere.status == .exited(64) && elsewhere.errors.contains("leaf server"))
    let bridge = try #require(machines.here.bridge)
    try bridge.child.send(.terminate)
    #expect(try bridge.outcome(within: .seconds(60)).status == .exited(0))
    #expect(try machines.here.status().contains(": over"))
  }

  @Test func aServiceManagerIsToldWhenItCarries() throws {
    guard let machines, Programs.installed("python3") != nil else {
      return skip("a service manager", because: "there is no python3")
    }
    let program = """
      import os, socket, subprocess, sys
      manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      manager.bind(sys.argv[1])
      manager.settimeout(60)
      bridge = subprocess.Popen(sys.argv[2:], env=dict(os.environ, NOTIFY_SOCKET=sys.argv[1]))
      print(manager.recv(100).decode(), flush=True)
      bridge.terminate()
      print(manager.recv(100).decode(), bridge.wait(), flush=True)
      """
    let machine = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let outcome = try run(
      "python3",
      ["-c", program, machines.folder.path + "/notify", Programs.built("wormhole")]
        + machine.arguments())
    #expect(outcome.output == "READY=1\nSTOPPING=1 0\n", "\(outcome.errors)")
  }

  /// The outcome of a refused message waits for no other news.
  @Test func theSenderOfARefusedMessageIsNotified() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    try there.waitUntilRunning("al")
    al.leave()
    try there.waitUntilRunning("al", false)
    // The machine knows the name's home, and a guest cannot take a member's name there.
    let bob = try there.container.join(as: "bob")
    try here.waitUntilRunning("bob")
    let third = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let namesake = try third.container.join(as: "al")
    try third.start()
    #expect(try wait { try third.status().contains("conflict: 'al'") })
    try third.waitUntilRunning("bob")
    let sent = try namesake.peer("bob").send(1, options())
    let end = sent.waitForEnd(until: .now + .seconds(60))
    guard case .deadLettered(let reason) = end else {
      Issue.record("the message ended as \(String(describing: end))")
      return
    }
    #expect(reason.contains("its home is machine"))
    withExtendedLifetime(bob) {}
  }

  @Test func serversWithSmallMessagesAreRefused() throws {
    let server = try TestServer.start(
      configuration: "max_payload: 100000", for: "a server with small messages")
    guard let server else { return }
    try BridgedMachine.setUp(server)
    let folder = try TemporaryDirectory()
    let machine = try BridgedMachine(folder.path + "/c", server)
    // The proxy of a member of a machine that is not there.
    let proxy = try Carrier(machine.container).proxy(
      of: .member("bob"), on: "0123456789abcdef")
    let sent = try machine.container.guest().peer("bob").send(1, options())
    let end = try machine.startBridge().outcome(within: .seconds(60))
    #expect(end.status == .exited(78) && end.errors.contains("max_payload"), "\(end.errors)")
    #expect(try sent.state == .inTransit)
    withExtendedLifetime(proxy) {}
  }

  @Test func aBridgeWithoutWorkSleeps() throws {
    guard let machines else { return }
    let bridge = try #require(machines.here.bridge)
    func used() throws -> Int {
      let file = try Descriptor.open(path: "/proc/\(bridge.child.process)/stat", [.readOnly])
      let text = String(decoding: try file.contents(), as: UTF8.self)
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
    }
    let before = try used()
    let _: Void? = Monitor(()).wait(until: .now + .seconds(3)) { _ in nil }
    // Hundredths of a second, of three hundred.
    #expect(try used() - before < 60)
  }
}
