import Foundation
import WormholeCFloor
import WormholeSyscalls

/// How a number reaches the other process through a server.
enum RivalWay: String {
  case redisPublish, redisPop, natsPublish

  var rival: Rival { self == .natsPublish ? .nats : .redis }
}

/// One direction of the exchange, from the view of a process: two connections, because a subscriber
/// may not publish.
final class RivalPeer {
  private let way: RivalWay
  private var sending = floor_peer()
  private var hearing = floor_peer()
  private let from: String
  private let to: String

  init(_ way: RivalWay, _ place: String, from: String, to: String) throws {
    (self.way, self.from, self.to) = (way, from, to)
    try Self.open(&sending, way, place)
    try Self.open(&hearing, way, place)
    switch way {
    case .redisPublish: try Self.check(floor_redis_subscribe(&hearing, from))
    case .redisPop: break
    case .natsPublish: try Self.check(floor_nats_subscribe(&hearing, from))
    }
  }

  deinit {
    floor_peer_close(&sending)
    floor_peer_close(&hearing)
  }

  private static func open(_ peer: inout floor_peer, _ way: RivalWay, _ place: String) throws {
    guard way.rival == .nats else { return try check(floor_peer_open_path(&peer, place)) }
    try check(floor_peer_open_port(&peer, CInt(place) ?? 0))
    try check(floor_nats_begin(&peer))
  }

  func send(_ number: Int64) throws {
    switch way {
    case .redisPublish: try Self.check(floor_redis_publish(&sending, to, number))
    case .redisPop: try Self.check(floor_redis_push(&sending, to, number))
    case .natsPublish: try Self.check(floor_nats_publish(&sending, to, number))
    }
  }

  func hear() throws -> Int64 {
    let number =
      switch way {
      case .redisPublish: floor_redis_hear(&hearing)
      case .redisPop: floor_redis_pop(&hearing, from)
      case .natsPublish: floor_nats_hear(&hearing)
      }
    guard number >= 0 else { throw BenchmarkError.floor("the server sent no number") }
    return number
  }

  private static func check(_ result: CInt) throws {
    guard result == 0 else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
  }
}

/// Both ends of the exchange through a server.
final class RivalAnswering {
  private let server: RivalServer
  private let peer: RivalPeer
  private let other: Child
  private var number: Int64 = 0

  init(_ way: RivalWay, _ path: String, _ size: Size) throws {
    // A socket's path is short.
    server = try RivalServer(way.rival, path)
    peer = try RivalPeer(way, server.place, from: "back", to: "there")
    other = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [RivalProcess.argument, way.rawValue, size.rawValue, server.place])
    // The second process sends a number when it listens.
    guard try peer.hear() == 0 else { throw BenchmarkError.wrongResult(way.rawValue) }
  }

  deinit {
    try? other.send(.kill)
    _ = try? other.wait()
  }

  var conditions: String { server.conditions }

  func exchange(rally: Int = PutToWatch.rally) throws {
    for _ in 0..<rally {
      number += 1
      try peer.send(number)
      guard try peer.hear() == number else { throw BenchmarkError.wrongResult("the number") }
    }
  }
}

/// The second process: this program, started again with a hidden argument.
enum RivalProcess {
  static let argument = "--rival-process"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let way = RivalWay(rawValue: arguments[0]),
      let size = Size(rawValue: arguments[1])
    else { throw BenchmarkError.wrongResult("the arguments of a process") }
    EchoProcess.pin(size == .small ? 0 : 1)
    let peer = try RivalPeer(way, arguments[2], from: "there", to: "back")
    try peer.send(0)
    while true { try peer.send(try peer.hear()) }
  }
}
