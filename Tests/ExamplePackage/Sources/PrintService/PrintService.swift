import Printing
import Wormhole

/// The service, which a supervisor starts and ends by a signal.
@main struct PrintService {
  static func main() async throws {
    try await runService {
      try await PrintShop(SharedContainer(directory: CommandLine.arguments[1])).serve()
    }
    print("ended in order")
  }
}
