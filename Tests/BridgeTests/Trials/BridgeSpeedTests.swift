import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

/// How fast two bridges carry, beside a plain client on the same server, in one run.
///
/// The times are printed and not judged: they belong to the machine and its load.
@Suite(.blocking, .serialized, .notSanitized("about times")) struct BridgeSpeedTests {
  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func bridgesBesideAPlainClient() throws {
    guard let machines = try BridgedMachines.start() else { return }
    let (al, bob) = (
      try machines.here.container.join(as: "al"), try machines.there.container.join(as: "bob")
    )
    try machines.here.waitUntilRunning("bob")
    var report = [try Self.plainPublishes(4000, machines.server)]
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    var options = SendOptions()
    (options.durability, options.wantsOutcome) = (.process, false)
    // A file for each message, and files of 64.
    for (name, count, isBatch) in [("files of their own", 3000, false), ("batches", 19_200, true)] {
      let before = heard.count
      let start = Instant.now
      if isBatch {
        try al.peer("bob").send(contentsOf: Array(0..<count), options)
      } else {
        for number in 0..<count { try al.peer("bob").send(number, options) }
      }
      try heard.wait(name, within: .seconds(300)) { $0.count == before + count }
      report.append("\(name): \(Self.rate(count, start)) messages/s")
    }
    receiving.stop()
    bob.leave()
    report.append("send --wait between machines: \(try Self.waits(machines.here, machines.there))")
    report.append("send --wait on one machine: \(try Self.waits(machines.there, machines.there))")
    print(report.joined(separator: "\n"))
  }

  private static func rate(_ count: Int, _ start: Instant) -> Int {
    Int(Double(count) / ((Instant.now - start) / .seconds(1)))
  }

  /// The times until commands have ended that wait for the outcome.
  private static func waits(_ from: BridgedMachine, _ to: BridgedMachine) throws -> String {
    let member = from === to ? "dan" : "eve"
    let receiver = try to.container.join(as: member)
    let receiving = try receiver.receive(String.self) { _, _ in }
    try from.waitUntilRunning(member)
    var times: [Double] = []
    for _ in 0..<40 {
      let start = Instant.now
      let outcome = try Running(
        Programs.built("wormhole"),
        ["--container", from.path, "send", "x", "--to", member, "--wait", "--timeout", "60"]
      ).outcome(within: .seconds(90))
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      times.append((Instant.now - start) / .milliseconds(1))
    }
    receiving.stop()
    receiver.leave()
    times.sort()
    return "median \(Int(times[20])) ms, the slowest but one \(Int(times[38])) ms"
  }

  /// Publishes messages of 200 bytes, at most 64 of them without an acknowledgement.
  private static func plainPublishes(_ count: Int, _ server: TestServer) throws -> String {
    var options = RelayConnection.Options(name: "plain")
    options.token = server.token
    let connection = try RelayConnection(RelayAddress(server.address), options)
    defer { connection.close() }
    let jetStream = JetStream(connection)
    let wake = try WakeDescriptor()
    var (sent, done, failed, start) = (0, 0, 0, Instant.now)
    let payload = [UInt8](repeating: 0x61, count: 200)
    while done < count {
      connection.proceed(.now)
      if case .closed(let failure) = connection.state { throw failure }
      if case .ready = connection.state {
        if sent == 0 { start = .now }
        while sent < count, sent - done < 64 {
          sent += 1
          jetStream.publish("whf.0.plain.g.x\(sent % 64)", payload, within: .seconds(30)) {
            done += 1
            if case .failure = $0 { failed += 1 }
          }
        }
      }
      try connection.wait(until: .now + .seconds(1), wake)
    }
    #expect(failed == 0)
    return "plain publishes: \(rate(count, start)) messages/s"
  }
}
