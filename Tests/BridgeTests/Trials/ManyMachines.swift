import TestSupport
import WormholeRelay
import WormholeSyscalls

/// Many machines of many groups, as the servers see them: for each machine a connection, a reader
/// of its bundles, a reader of its group's records, and heartbeats.
///
/// One thread drives all machines. The deployment has one stream of each kind, as by default.
final class ManyMachines {
  /// How many machines there are, in groups of five, and what the records contain.
  struct Size {
    let machines: Int
    let groups: Int
    let members: Int
    static let perGroup = 5
  }

  final class Machine {
    let name: String
    let group: String
    let connection: RelayConnection
    private let stream: JetStream
    private var readers: [StreamReader] = []
    private(set) var records: Set<String> = []
    private(set) var heartbeats = 0

    init(_ number: Int, _ address: String, _ token: String) throws {
      name = ManyMachines.name(ofMachine: number)
      group = ManyMachines.name(ofGroup: number / Size.perGroup)
      var options = RelayOptions(name: "machine", token: token)
      options.inbox = "_INBOX.\(name)"
      options.handshakeTimeout = .seconds(120)
      connection = try RelayConnection(RelayAddress(address), options)
      stream = JetStream(connection)
      connection.subscribe("whm.\(name).*.*") { _ in }
      connection.subscribe("whb.\(group).*") { [weak self] _ in self?.heartbeats += 1 }
    }

    var isReady: Bool { connection.state == .ready }
    var isCaughtUp: Bool { readers.count == 2 && readers.allSatisfy(\.isCaughtUp) }
    var restarts: Int { readers.map(\.restarts).reduce(0, +) }

    func read() {
      records = []
      readers = [
        StreamReader(
          stream, stream: "WHS_0", filter: "whs.0.\(group).>", from: .lastPerSubject
        ) { [weak self] messages in
          for message in messages { self?.records.insert(message.subject) }
        },
        StreamReader(stream, stream: "WHF_0", filter: "whf.0.\(name).\(group).*", from: .after(0)) {
          _ in
        },
      ]
    }

    /// Records the start of the machine's bridge.
    func record(_ handler: @escaping (Bool) -> Void) {
      stream.publish(
        "whs.0.\(group).x.\(name)", ManyMachines.machineRecord, within: .seconds(60)
      ) { if case .success = $0 { handler(true) } else { handler(false) } }
    }

    func beat() throws {
      try connection.publish("whb.\(group).\(name)", ManyMachines.heartbeat)
    }

    /// Returns whether anything has arrived.
    func proceed(_ now: Instant) -> Bool {
      let before = connection.receivedBytes
      connection.proceed(now)
      for reader in readers { reader.proceed(now) }
      return connection.receivedBytes != before
    }
  }

  /// As large as the real ones: a machine with two members that run.
  fileprivate static let heartbeat = [UInt8](repeating: 0x62, count: 400)
  fileprivate static let machineRecord = Array(
    #"{"generation":1,"nonce":"0123456789abcdef"}"#.utf8)

  let size: Size
  private(set) var machines: [Machine] = []
  private let addresses: [String]
  private let token: String
  private let pause = Monitor(())

  init(_ size: Size, _ hub: TestHub) {
    self.size = size
    addresses = hub.servers.map { hub.address(of: $0) }
    token = hub.options.token
  }

  fileprivate static func name(ofMachine number: Int) -> String {
    let digits = String(number + 1, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  fileprivate static func name(ofGroup number: Int) -> String { "g\(number)" }

  /// Drives all machines until the condition holds.
  func run(_ what: String, within time: Duration, until isDone: () throws -> Bool) throws {
    var limit = TimeLimit(time)
    while try !isDone() {
      let now = Instant.now
      var hasArrived = false
      for machine in machines where machine.proceed(now) { hasArrived = true }
      guard !limit.isOver() else { throw TooLate(description: "\(what): not within \(time)") }
      if !hasArrived { let _: Void? = pause.wait(until: now + .milliseconds(1)) { _ in nil } }
    }
  }

  /// Stores the home record of each member, a few hundred at a time.
  func storeMembers() throws {
    let writer = try Machine(size.machines, addresses[0], token)
    machines = [writer]
    try run("the writer is connected", within: .seconds(120)) { writer.isReady }
    let stream = JetStream(writer.connection)
    var (next, stored, failed) = (0, 0, 0)
    try run("the homes are recorded", within: .seconds(900)) {
      while next - stored - failed < 400, next < size.members {
        let group = Self.name(ofGroup: next % size.groups)
        let home = Self.name(ofMachine: next % size.machines)
        stream.publish(
          "whs.0.\(group).m.member\(next)", expectedLast: 0,
          Array("{\"machine\":\"\(home)\"}".utf8), within: .seconds(60)
        ) { if case .success = $0 { stored += 1 } else { failed += 1 } }
        next += 1
      }
      return stored + failed == size.members
    }
    guard failed == 0 else { throw TooLate(description: "\(failed) records were refused") }
    disconnect()
  }

  /// Connects all machines, and waits until the servers have accepted them.
  func connect() throws {
    disconnect()
    for number in 0..<size.machines {
      machines.append(try Machine(number, addresses[number % addresses.count], token))
    }
    try run("all machines are connected", within: .seconds(300)) {
      machines.allSatisfy(\.isReady)
    }
  }

  func recordMachines() throws {
    var (stored, due) = (0, machines)
    try run("the starts are recorded", within: .seconds(300)) {
      // As a bridge, a machine tries again where the servers did not answer.
      for machine in due {
        machine.record { if $0 { stored += 1 } else { due.append(machine) } }
      }
      due = []
      return stored == machines.count
    }
  }

  /// Makes the readers of all machines, and waits until each has read everything.
  func read() throws {
    for machine in machines { machine.read() }
    try run("all machines have read", within: .seconds(600)) {
      machines.allSatisfy(\.isCaughtUp)
    }
  }

  func disconnect() {
    for machine in machines { machine.connection.close() }
    machines = []
  }

  var received: Int { machines.map(\.heartbeats).reduce(0, +) }

  /// Each machine sends so many heartbeats, one per second.
  func beat(_ rounds: Int) throws {
    let start = Instant.now
    for round in 0..<rounds {
      for (number, machine) in machines.enumerated() {
        let offset = Duration.seconds(1) * (Double(number) / Double(machines.count))
        let due = start + .seconds(round) + offset
        try run("the next heartbeat is due", within: .seconds(60)) { .now >= due }
        try machine.beat()
      }
    }
    let expected = received(after: rounds)
    try run("all heartbeats have arrived", within: .seconds(60)) { received >= expected }
  }

  /// How many heartbeats the machines of a group get of each other.
  func received(after rounds: Int) -> Int {
    var sizes: [String: Int] = [:]
    for machine in machines { sizes[machine.group, default: 0] += 1 }
    return sizes.values.map { $0 * $0 * rounds }.reduce(0, +)
  }

  /// Sends heartbeats as fast as they arrive, and returns how many arrived in a second.
  func flood(for time: Duration) throws -> Int {
    let (start, before) = (Instant.now, received)
    var sent = 0
    let perRound = Size.perGroup
    try run("the flood ends", within: time * 10) {
      if received - before >= (sent - machines.count * 2) * perRound || sent == 0 {
        for machine in machines where !machine.connection.wantsToWrite {
          try machine.beat()
          sent += 1
        }
      }
      return .now - start >= time
    }
    return Int(Double(received - before) / ((Instant.now - start) / .seconds(1)))
  }
}
