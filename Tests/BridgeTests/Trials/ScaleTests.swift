import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Many machines, groups and members on three real servers, which share one file system here.
///
/// The times and the memory are printed. They belong to the machine and its load, and only the
/// memory has a generous bound.
@Suite(.blocking, .serialized, .notSanitized("about memory and times")) struct ScaleTests {
  private static let patience = Duration.seconds(120)

  @Test func fewMachinesReadTheRecordsOfTheirGroups() throws {
    try Self.run(ManyMachines.Size(machines: 20, groups: 100, members: 1000))
  }

  /// As many machines as one stream takes.
  @Test(.enabled(if: TestRun.isLong, "WORMHOLE_LONG=1 lets it run"))
  func manyMachinesReadTheRecordsOfTheirGroups() throws {
    try Self.run(ManyMachines.Size(machines: 800, groups: 10_000, members: 100_000))
  }

  private static func run(_ size: ManyMachines.Size) throws {
    var options = TestHub.Options(machines: 0)
    (options.usesNamespaces, options.usesTLS, options.syncAlways) = (false, false, false)
    guard let hub = try TestHub.start(options, for: "many machines") else { return }
    let setup = try hub.run(
      in: hub.servers[0], Programs.built("wormhole"),
      [
        "bridge", "setup", "--nats", hub.address(of: hub.servers[0]), "--token-file",
        hub.tokenFile, "--timeout", "120",
      ], within: Self.patience)
    #expect(setup.status == .exited(0), "\(setup.errors)")
    let crowd = ManyMachines(size, hub)
    var report = ["\(size.machines) machines, \(size.groups) groups, \(size.members) members"]
    func measure(_ what: String, _ body: () throws -> Void) throws {
      let (start, busy) = (Instant.now, try processorTime(hub))
      try body()
      let seconds = (Instant.now - start) / .seconds(1)
      let share = max(0, try processorTime(hub) - busy) / max(seconds, 0.1)
      report.append(
        "\(what): \(rounded(seconds)) s, servers \(try memory(hub)) MiB each, "
          + "\(rounded(share)) processors")
    }
    try measure("at first") {}
    try measure("home records") { try crowd.storeMembers() }
    try measure("connections") { try crowd.connect() }
    try measure("machine records") { try crowd.recordMachines() }
    try measure("readers") { try crowd.read() }
    checkRecords(crowd)
    let before = crowd.received
    let rounds = TestRun.isLong ? 10 : 2
    try measure("\(rounds) rounds of heartbeats, one per second") { try crowd.beat(rounds) }
    #expect(crowd.received - before == crowd.received(after: rounds))
    report.append("heartbeats received per second: \((crowd.received - before) / rounds)")
    if TestRun.isLong {
      var rate = 0
      try measure("as many heartbeats as arrive") { rate = try crowd.flood(for: .seconds(5)) }
      report.append("heartbeats received per second, at most: \(rate)")
      #expect(rate > 0)
    }
    // A flood may delay the heartbeats of a reader for so long that it is made again.
    report.append("readers made again: \(crowd.machines.map(\.restarts).reduce(0, +))")
    try crowd.run("all machines have read", within: patience) {
      crowd.machines.allSatisfy(\.isCaughtUp)
    }
    // All servers fail at once: every machine connects and reads again.
    crowd.disconnect()
    try measure("all servers started again") {
      try hub.restartServers()
      try hub.waitUntilReady(within: .seconds(300))
    }
    try measure("connections after it") { try crowd.connect() }
    try measure("readers after it") { try crowd.read() }
    checkRecords(crowd)
    let memories = try memory(hub)
    #expect(memories.allSatisfy { $0 < 1500 }, "\(memories)")
    print(report.joined(separator: "\n"))
  }

  /// Each machine has the records of its group, and no others.
  private static func checkRecords(_ crowd: ManyMachines) {
    let size = crowd.size
    for (number, machine) in crowd.machines.enumerated() {
      let group = number / ManyMachines.Size.perGroup
      let first = group * ManyMachines.Size.perGroup
      let others = min(size.machines - first, ManyMachines.Size.perGroup)
      let members = (size.members - group + size.groups - 1) / size.groups
      #expect(machine.records.count == others + members)
      #expect(machine.records.allSatisfy { $0.hasPrefix("whs.0.\(machine.group).") })
    }
  }

  /// The resident memory of each server, in MiB.
  private static func memory(_ hub: TestHub) throws -> [Int] {
    try hub.servers.map { server in
      let process = try #require(hub.process(of: server))
      let text = String(
        decoding: try Descriptor.open(path: "/proc/\(process)/status", [.readOnly]).contents(),
        as: UTF8.self)
      let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
      return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) })
        / 1024
    }
  }

  /// The seconds of processor time of all servers.
  private static func processorTime(_ hub: TestHub) throws -> Double {
    try hub.servers.compactMap { hub.process(of: $0) }.map { process in
      let text = String(
        decoding: try Descriptor.open(path: "/proc/\(process)/stat", [.readOnly]).contents(),
        as: UTF8.self)
      let fields = text.split(separator: ")").last!.split(separator: " ")
      return (Double(fields[11]) ?? 0) / 100 + (Double(fields[12]) ?? 0) / 100
    }.reduce(0, +)
  }

  private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
}
