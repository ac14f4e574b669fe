import Wormhole

struct Config: Codable {
  var workers = 4
}

struct OutOfRange: Error {}

@main struct Server {
  static func main() async throws {
    let container = try await SharedContainer(directory: "server.container")
    let channel = container.channel("config", default: Config()) { config in
      guard (1...64).contains(config.workers) else { throw OutOfRange() }
    }
    if let workers = CommandLine.arguments.last.flatMap({ Int($0) }) {
      do {
        try await channel.update { $0.workers = workers }
      } catch is OutOfRange {
        print("refused: 1 to 64 workers")
      }
    } else {  // the server: prints each configuration until one worker is left
      for try await config in channel.values {
        print(config.workers, "workers")
        if config.workers == 1 { return }
      }
    }
  }
}
