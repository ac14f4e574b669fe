import Wormhole

@main struct Cinema {
  static func main() async throws {
    let container = try await SharedContainer(directory: "cinema.container")
    let seats = container.channel("seats", of: Int.self)
    if CommandLine.arguments.last == "sell" {
      let left = try await seats.update(default: 120) { $0 -= 2 }
      print(left, "seats left")
    } else {  // the board: prints the value, and each change until no seat is left
      for try await left in seats.values {
        print(left ?? 120, "seats left")
        if left == 0 { return }
      }
    }
  }
}
