import Foundation
import WormholeCFloor
import WormholeSyscalls

/// A system that `--compare` measures beside the library.
enum Rival: String, CaseIterable {
  case redis, sqlite, nats

  /// The workloads, each with its durability in its name or its summary.
  var benchmarks: [any Benchmark.Type] {
    switch self {
    case .redis: [RedisPublish.self, RedisPop.self, RedisFanOut.self, RedisPipelined.self]
    case .nats: [NatsPublish.self]
    case .sqlite: [SQLiteUpdate.self]
    }
  }
}

/// A server of another system, in a temporary directory and on one processor.
///
/// The server is bound to the last processor: the measured processes have the first ones. NATS gets
/// a port of the loopback, because its server has no listener on a socket of the file system.
final class RivalServer {
  /// The place of the server: the path of its socket, or its port.
  let place: String
  private let rival: Rival
  private let child: Child

  /// - Throws: ``BenchmarkError/absent(_:)`` if the machine does not have the program.
  init(_ rival: Rival, _ path: String) throws {
    self.rival = rival
    let words: [String]
    switch rival {
    case .redis:
      place = path + "/redis"
      words = [
        try Machine.program("redis-server", variable: "WORMHOLE_REDIS_SERVER"), "--port", "0",
        "--unixsocket", place, "--save", "", "--appendonly", "no",
      ]
    case .nats:
      words = [
        try Machine.program("nats-server", variable: "WORMHOLE_NATS_SERVER"), "-a", "127.0.0.1",
        "-p", "-1", "--ports_file_dir", path,
      ]
      (child, place) = try Self.startNats(words, path)
      return
    case .sqlite: throw BenchmarkError.absent("a server of SQLite")
    }
    child = try Self.spawn(words)
    let socket = place
    try Self.wait { FileManager.default.fileExists(atPath: socket) }
  }

  deinit {
    try? child.send(.kill)
    _ = try? child.wait()
  }

  /// The durability, the transport and the processor, as the row names them.
  var conditions: String {
    let processor = floor_processor(child.process)
    let binding = processor < 0 ? "on any processor" : "on processor \(processor)"
    let transport = rival == .nats ? "a port of the loopback" : "a socket in a directory"
    return "\(rival.rawValue)-server \(binding), through \(transport), nothing on disk"
  }

  /// The server writes its port into a file.
  private static func startNats(_ words: [String], _ path: String) throws -> (Child, String) {
    let child = try spawn(words)
    var port: String?
    try wait {
      let file = "\(path)/nats-server_\(child.process).ports"
      let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
      port = text.split(separator: "\"").first { $0.hasPrefix("nats://") }?
        .split(separator: ":").last.map(String.init)
      return port != nil
    }
    return (child, port ?? "")
  }

  /// Starts the program on the last processor, and leaves this process without a binding.
  private static func spawn(_ words: [String]) throws -> Child {
    // A process that is still bound would find only its own processor.
    EchoProcess.pin(-1)
    EchoProcess.pin(floor_last_processor())
    // The program inherits the binding before it has threads.
    defer { EchoProcess.pin(-1) }
    let nothing = try Descriptor.open(path: "/dev/null", [.readWrite])
    return try Child.spawn(
      words[0], Array(words.dropFirst()), output: nothing.rawValue, error: nothing.rawValue)
  }

  private static func wait(_ isThere: () -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while !isThere() {
      guard ContinuousClock.now < deadline else {
        throw BenchmarkError.nothingMeasured("the server did not start")
      }
      Foundation.Thread.sleep(forTimeInterval: 0.01)
    }
  }
}
