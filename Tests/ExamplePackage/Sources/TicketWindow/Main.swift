import Tickets
import Wormhole

/// A box office in a process of its own: sells until closing time.
@main struct TicketWindow {
  static func main() async throws {
    guard CommandLine.arguments.count > 1 else { return }
    let hole = try await Wormhole(directory: CommandLine.arguments[1])
    let office = BoxOffice(try await hole.join(as: "office"), in: hole)
    let sales = try office.open()
    for try await _ in hole.notice("closing time").posts { break }
    _ = sales
  }
}
