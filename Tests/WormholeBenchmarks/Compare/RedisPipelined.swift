import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// Values of an asynchronous sequence in a member's queue, against values in a list of Redis.
///
/// Redis gets 64 commands before it replies, and keeps the list in memory. A file has at most 64
/// messages, and is in the page cache. Emptying queue and list is not measured.
struct RedisPipelined: Benchmark {
  static let name = "redis-pipelined"
  static let summary = "an async sequence of values, against pipelined RPUSH in memory"
  static let isPaired = true

  /// About 100 bytes, as a ticket has them.
  private struct Ticket: Codable, Sendable {
    var film = "Metropolis", hall = "Odeon, second floor", seat = "row 12, seat 7"
    var number: Int
  }

  private let scratch: Scratch
  private let peer: Peer
  private let server: RivalServer
  private let list: List
  private let count: Int

  /// The connection to the server.
  private final class List {
    var peer = floor_peer()
    deinit { floor_peer_close(&peer) }
  }

  private static let each = 64
  private static let size = 100

  init(size: Size) throws {
    count = size == .small ? 6_400 : 64_000
    scratch = try Scratch()
    server = try RivalServer(.redis, scratch.path)
    list = List()
    try Self.check(floor_peer_open_path(&list.peer, server.place))
    let container = try SharedContainer(directory: scratch.path + "/holes")
    _ = try container.join(as: "watch")
    peer = container.peer("watch", from: "phone")
    try ours()
    try baseline()
  }

  func ours() throws {
    let tickets = AsyncStream<Ticket> { stream in
      for number in 0..<count { stream.yield(Ticket(number: number)) }
      stream.finish()
    }
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = false
    let end = Monitor<Result<Int, any Error>?>(nil)
    Task { [peer, options] in
      do {
        let sent = try await peer.send(each: tickets, options)
        end.signal { $0 = .success(sent) }
      } catch {
        end.signal { $0 = .failure(error) }
      }
    }
    guard let sent = end.wait(until: .now + .seconds(60), { $0 }), try sent.get() == count else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
  }

  func baseline() throws {
    let value = String(repeating: "7", count: Self.size)
    for _ in 0..<(count / Self.each) {
      try Self.check(
        floor_redis_push_many(&list.peer, "tickets", value, Self.size, CInt(Self.each)))
    }
  }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    var samples: [Double] = []
    for _ in 0..<3 {
      samples.append(
        try ContinuousClock().measure { try isOurs ? ours() : baseline() }.nanoseconds)
      if isOurs {
        _ = try peer.purge()
      } else {
        try Self.check(floor_redis_delete(&list.peer, "tickets"))
      }
    }
    return samples
  }

  func details() throws -> [Detail] {
    func rate(_ isOurs: Bool) throws -> Double {
      Double(count) / Measurement(samples: try samples(ours: isOurs) ?? []).median * 1e9
    }
    return [
      Detail("messages a second", try rate(true)), Detail("with Redis", try rate(false)),
    ]
  }

  var conditions: String? { server.conditions }

  private static func check(_ result: CInt) throws {
    guard result == 0 else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
  }
}
