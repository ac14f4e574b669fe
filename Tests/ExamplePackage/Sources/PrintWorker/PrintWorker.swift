import Printing
import Wormhole

/// A worker; any number may run.
@main struct PrintWorker {
  static func main() async throws {
    try await runService {
      let shop = PrintShop(try await SharedContainer(directory: CommandLine.arguments[1]))
      print("working")
      try await shop.work()
    }
    print("ended in order")
  }
}
