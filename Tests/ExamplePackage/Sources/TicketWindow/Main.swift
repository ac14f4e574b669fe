import Tickets
import Wormhole

/// A box office in a process of its own: sells until closing time.
@main struct TicketWindow {
  static func main() async throws {
    guard CommandLine.arguments.count > 1 else { return }
    let container = try await SharedContainer(directory: CommandLine.arguments[1])
    let office = BoxOffice(try await container.join(as: "office"), in: container)
    let sales = try office.open()
    for try await _ in container.notice("closing time").posts { break }
    _ = sales
  }
}
