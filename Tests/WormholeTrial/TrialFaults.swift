import TestSupport
import WormholeSyscalls

/// The faults of a trial, drawn from its seed, and their ends.
final class TrialFaults {
  private let bridged: BridgedHub
  private let cast: TrialCast
  private var random: SeededRandom
  private var ends: [(at: Instant, node: String, body: () throws -> Void)] = []
  private(set) var counts: [String: Int] = [:]
  /// Bridges that have ended by themselves.
  private(set) var failures: [String] = []

  private var hub: TestHub { bridged.hub }

  init(_ bridged: BridgedHub, _ cast: TrialCast, seed: UInt64) {
    (self.bridged, self.cast) = (bridged, cast)
    random = SeededRandom(seed: seed)
  }

  private enum Kind: CaseIterable {
    case killBridge, suspendBridge, killReceiver, suspendReceiver, killWaiter
    case killServer, suspendServer, killAllServers, killLeaf
    case cutMachine, cutMachineSending, cutMachineReceiving, cutServer, cutServerSending
    case cutServers

    /// How often one of a hundred or so is drawn.
    var weight: Int {
      switch self {
      case .killBridge: 30
      case .killReceiver: 15
      case .suspendBridge, .killWaiter, .cutMachine: 7
      case .cutMachineSending, .cutMachineReceiving, .killServer, .killLeaf: 5
      case .suspendReceiver, .suspendServer, .cutServer, .cutServerSending, .cutServers: 3
      case .killAllServers: 2
      }
    }
  }

  /// Makes one fault happen.
  func strike() throws {
    var place = Int.random(in: 0..<Kind.allCases.reduce(0) { $0 + $1.weight }, using: &random)
    for kind in Kind.allCases {
      place -= kind.weight
      guard place < 0 else { continue }
      if try strike(kind) { counts["\(kind)", default: 0] += 1 }
      return
    }
  }

  /// Ends each fault whose time is over, or all; starts again what was killed.
  func proceed(isOver: Bool = false) throws {
    let now = Instant.now
    let due = ends.filter { isOver || $0.at <= now }
    ends.removeAll { isOver || $0.at <= now }
    for end in due { try end.body() }
    if isOver {
      try hub.heal()
      for node in hub.nodes where hub.process(of: node) == nil { try hub.start(node) }
    }
    for machine in bridged.machines {
      if let bridge = machine.bridge, bridge.hasEnded {
        let outcome = try bridge.outcome()
        if outcome.status != .signalled(9) {
          failures.append("\(machine.node): \(outcome.status) \(outcome.errors.suffix(1000))")
        }
        try bridged.killBridge(of: machine)
        try bridged.startBridge(of: machine)
      }
    }
  }

  /// Returns false if the fault is not possible now.
  private func strike(_ kind: Kind) throws -> Bool {
    let machine = bridged.machines.randomElement(using: &random)!
    let server = hub.servers.randomElement(using: &random)!
    let pause = Duration.milliseconds(Int.random(in: 200...3000, using: &random))
    let number = Int.random(in: 0..<1000, using: &random)
    switch kind {
    case .killBridge: return try send(.kill, machine.bridge)
    case .suspendBridge: return try suspend("bridge \(machine.node)", machine.bridge, pause)
    case .killReceiver: return try send(.kill, cast.receivers[number % cast.receivers.count])
    case .suspendReceiver:
      let place = number % cast.receivers.count
      return try suspend("receiver \(place)", cast.receivers[place], pause)
    case .killWaiter:
      guard !cast.waiters.isEmpty else { return false }
      return try send(.kill, cast.waiters[number % cast.waiters.count].process)
    case .killServer:
      return try during(pause, "\(server)") {
        try self.hub.kill(server)
      } end: {
        try self.startIfNeeded(server)
      }
    case .suspendServer:
      guard hub.process(of: server) != nil else { return false }
      return try during(pause, "\(server)") {
        try self.hub.suspend(server)
      } end: {
        try? self.hub.resume(server)
      }
    case .killAllServers:
      guard hub.servers.allSatisfy({ isFree("\($0)") }) else { return false }
      return try during(pause, "servers") {
        try self.hub.killServers()
      } end: {
        for server in self.hub.servers { try self.startIfNeeded(server) }
      }
    case .killLeaf:
      return try during(pause, "\(machine.node)") {
        try self.hub.kill(machine.node)
      } end: {
        try self.startIfNeeded(machine.node)
      }
    case .cutMachine: return try cut(machine.node, pause * 2) { try self.hub.cut($0) }
    case .cutMachineSending:
      return try cut(machine.node, pause * 2) { try self.hub.cutSending(of: $0) }
    case .cutMachineReceiving:
      return try cut(machine.node, pause * 2) { try self.hub.cutReceiving(of: $0) }
    case .cutServer: return try cut(server, pause * 2) { try self.hub.cut($0) }
    case .cutServerSending: return try cut(server, pause * 2) { try self.hub.cutSending(of: $0) }
    case .cutServers:
      let other = hub.servers[(hub.servers.firstIndex(of: server)! + 1) % hub.servers.count]
      return try cut(server, pause * 2) { try self.hub.cut($0, from: other) }
    }
  }

  private func isFree(_ node: String) -> Bool {
    !ends.contains { $0.node == node || $0.node == "servers" }
  }

  private func during(
    _ pause: Duration, _ node: String, _ begin: () throws -> Void,
    end: @escaping () throws -> Void
  ) throws -> Bool {
    guard isFree(node) else { return false }
    try begin()
    ends.append((.now + pause, node, end))
    return true
  }

  private func cut(
    _ node: TestHub.Node, _ pause: Duration, _ begin: (TestHub.Node) throws -> Void
  ) throws -> Bool {
    guard hub.network != nil else { return false }
    return try during(pause, "cut \(node)") {
      try begin(node)
    } end: {
      try self.hub.heal(node)
    }
  }

  private func startIfNeeded(_ node: TestHub.Node) throws {
    if hub.process(of: node) == nil { try hub.start(node) }
  }

  private func send(_ signal: Processes.Signal, _ process: Running?) throws -> Bool {
    guard let process, !process.hasEnded else { return false }
    // The process may have ended in this moment.
    return (try? process.child.send(signal)) != nil
  }

  private func suspend(_ name: String, _ process: Running?, _ pause: Duration) throws -> Bool {
    guard let process, !process.hasEnded else { return false }
    return try during(pause, name) {
      try? process.child.send(.stop)
    } end: {
      if !process.hasEnded { try? process.child.send(.go) }
    }
  }
}
