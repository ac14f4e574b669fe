import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// A bridge without servers: a test brings it the heartbeats of others, in any order.
final class UnconnectedBridge {
  let path: String
  let container: SharedContainer
  let bridge: Bridge

  /// - Parameters:
  ///   - servers: the servers, for a test that lets the bridge run.
  ///   - patience: how long the first connection may take.
  init(
    _ path: String, _ servers: String = "nats://127.0.0.1:1", options: Options = Options(),
    patience: Duration? = nil
  ) throws {
    self.path = path
    container = try SharedContainer(directory: path, options: options)
    let news = try BridgeNews()
    let lock = try #require(try BridgeLock.take(container, news))
    var settings = Bridge.Settings(group: "g", address: try RelayAddress(servers))
    settings.token = "secret"
    settings.patience = patience
    bridge = try Bridge(container, settings, news, lock)
  }

  deinit {
    bridge.queues.stop()
    bridge.stopChannels()
  }

  var machine: String { bridge.place.machine }

  // MARK: Heartbeats

  /// What the next heartbeat states of queues.
  private func beat() throws -> [UInt8] {
    let late: Set<String> = bridge.queues.late.values.reduce(into: []) { $0.formUnion($1) }
    return try #require(
      Heartbeat.bytes(
        generation: bridge.place.generation, [], full: [], queues: bridge.queueTerms,
        heirs: bridge.heirs, late: late, work: bridge.work))
  }

  func hear(_ other: UnconnectedBridge) throws { hear(other.machine, try other.beat()) }

  /// Hears a heartbeat with the given statements.
  func hear(
    _ machine: String, generation: Int = 1, queues: [String: Int] = [:],
    heirs: [String: Heartbeat.Heir] = [:], work: [String: WorkerStatement] = [:]
  ) throws {
    let bytes = Heartbeat.bytes(
      generation: generation, [], full: [], queues: queues, heirs: heirs, work: work)
    hear(machine, try #require(bytes))
  }

  private func hear(_ machine: String, _ beat: [UInt8]) {
    bridge.take(heartbeat: RelayMessage(subject: "whb.g.\(machine)", payload: beat), .now)
  }

  /// Looks at the queues, as each second.
  func look() {
    bridge.queues.nextLook = .longAgo
    bridge.carryQueues(.now)
  }

  /// Some seconds: each bridge looks at its queues, and hears the heartbeats of all others.
  static func exchange(_ all: [UnconnectedBridge]) throws {
    for _ in 0..<6 {
      for one in all { one.look() }
      for one in all { for other in all where other !== one { try one.hear(other) } }
    }
  }

  /// Some seconds in which all heartbeats are sent before the first of them is heard.
  static func exchangeAtOnce(_ all: [UnconnectedBridge]) throws {
    for _ in 0..<10 {
      for one in all { one.look() }
      let beats = try all.map { try $0.beat() }
      for one in all {
        for (other, beat) in zip(all, beats) where other !== one { one.hear(other.machine, beat) }
      }
    }
  }

  // MARK: Queues

  /// The home of a queue, as the bridge knows it.
  func home(of queue: String) -> String? {
    bridge.queues.own.contains(queue) ? machine : bridge.residents[.queue(queue)]?.machine
  }

  func entry(_ queue: String) throws -> QueueList.Entry? {
    try QueueList(of: container.storage).entry(queue)
  }

  /// The names in a directory of the container; empty if there is no such directory yet.
  func names(_ directory: String) throws -> [String] {
    do {
      return try Descriptor.open(path: path + "/" + directory, [.readOnly, .directory])
        .names().sorted()
    } catch Errno.noSuchFile {
      return []
    }
  }
}
