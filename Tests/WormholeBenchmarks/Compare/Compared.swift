import Foundation
import WormholeCFloor

/// Ten puts and their watchers there and back, against the same through a server.
///
/// In the small size both processes share a processor; in the large size each process has its own.
/// The server is bound to the last processor: in the small size of a host with two, no other
/// process of the exchange runs there.
private final class Exchanges {
  let ours: Answering
  let theirs: RivalAnswering
  private let scratch: Scratch

  init(_ way: RivalWay, _ size: Size) throws {
    scratch = try Scratch()
    theirs = try RivalAnswering(way, scratch.path, size)
    EchoProcess.pin(0)
    ours = try Answering(scratch.path, .init(size))
    for _ in 0..<5 {
      try ours.exchange()
      try theirs.exchange()
    }
  }

  /// Removes the binding: details come last, and have no figures here.
  ///
  /// A `deinit` would remove the binding of the next instance, which a paired workload makes before
  /// it releases the old one.
  func unbind() -> [Detail] {
    EchoProcess.pin(-1)
    return []
  }
}

/// Redis delivers to subscribers that are connected, and stores nothing.
struct RedisPublish: Benchmark {
  static let name = "redis-publish"
  static let summary = "put and watcher, there and back, against PUBLISH without persistence"
  static let isPaired = true
  private let both: Exchanges

  init(size: Size) throws { both = try Exchanges(.redisPublish, size) }
  func ours() throws { try both.ours.exchange() }
  func baseline() throws { try both.theirs.exchange() }
  func details() throws -> [Detail] { both.unbind() }
  var conditions: String? { both.theirs.conditions }
}

/// A list in the memory of the server.
struct RedisPop: Benchmark {
  static let name = "redis-pop"
  static let summary = "put and watcher, there and back, against RPUSH and BLPOP in memory"
  static let isPaired = true
  private let both: Exchanges

  init(size: Size) throws { both = try Exchanges(.redisPop, size) }
  func ours() throws { try both.ours.exchange() }
  func baseline() throws { try both.theirs.exchange() }
  func details() throws -> [Detail] { both.unbind() }
  var conditions: String? { both.theirs.conditions }
}

/// NATS delivers to subscribers that are connected, and stores nothing.
struct NatsPublish: Benchmark {
  static let name = "nats-publish"
  static let summary = "put and watcher, there and back, against PUB and SUB in memory"
  static let isPaired = true
  private let both: Exchanges

  init(size: Size) throws { both = try Exchanges(.natsPublish, size) }
  func ours() throws { try both.ours.exchange() }
  func baseline() throws { try both.theirs.exchange() }
  func details() throws -> [Detail] { both.unbind() }
  var conditions: String? { both.theirs.conditions }
}

/// Updates of a number by one process, or in the large size by two, against transactions of SQLite
/// in WAL mode with `synchronous = NORMAL`, which survive the death of a process.
struct SQLiteUpdate: Benchmark {
  static let name = "sqlite-update"
  static let summary = "an update, against a transaction of SQLite (WAL, NORMAL)"
  private let size: Size
  private var processes: Int { size == .small ? 1 : 2 }

  init(size: Size) throws {
    self.size = size
    let scratch = try Scratch()
    _ = try Database(scratch.path)
  }

  func ours() throws { _ = try samples(ours: true) }
  func baseline() throws { _ = try samples(ours: false) }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    let details = try UpdateProcess.measure(
      isOurs ? .ours : .database, size, processes: processes)
    return [1e9 / details[0].value]
  }

  var conditions: String? {
    "a library in the process, WAL, synchronous = NORMAL: a power cut can undo the last updates"
  }
}

/// A database with a number.
final class Database {
  private var database = floor_database()

  /// - Throws: ``BenchmarkError/absent(_:)`` if the machine does not have the library.
  init(_ path: String) throws {
    let result = floor_database_open(&database, path + "/database")
    if result == -2 { throw BenchmarkError.absent("libsqlite3.so.0") }
    guard result == 0 else { throw BenchmarkError.floor("cannot open the database") }
  }

  deinit { floor_database_close(&database) }

  func add() throws {
    guard floor_database_add(&database) == 0 else { throw BenchmarkError.floor("add") }
  }

  func number() -> Int { Int(floor_database_number(&database)) }
}
