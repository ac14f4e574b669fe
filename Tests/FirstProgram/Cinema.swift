import Wormhole

@main struct Cinema {
  static func main() async throws {
    let hole = try await Wormhole(directory: "cinema.container")
    let seats = hole.channel("seats", of: Int.self)
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
