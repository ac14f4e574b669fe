import Wormhole

struct Order: Codable, Sendable { var film: String, seats: Int }
struct SeatsLeft: RequestValue { typealias Reply = Int }

@main struct Cinema {
  static func main() async throws {
    let container = try await SharedContainer(directory: "cinema.container")
    let orders = container.channel("orders", of: [String: Order].self)
    switch CommandLine.arguments.last {
    case "office":  // accepts orders and requests until it is ended
      let office = try await container.join(as: "office")
      office.respond(to: SeatsLeft.self) { _ in
        try 120 - (orders.value ?? [:]).values.reduce(0) { $0 + $1.seats }
      }
      let receiving = try office.receive(Order.self) { order, message in
        // The ID is the key, so a redelivered order is stored once.
        try await orders.update(default: [:]) { $0[message.id] = order }
      }
      try await receiving.finished()

    case "till":  // sends an order, which waits while no office runs, and makes a request
      let office = try await container.join(as: "till").peer("office")
      let sent = try await office.send(Order(film: "Metropolis", seats: 2))
      try await sent.waitUntilDelivered(within: .seconds(30))
      print(try await office.request(SeatsLeft(), within: .seconds(5)), "seats left")

    default:  // prints each change of the orders
      for try await value in orders.values { print(value?.count ?? 0, "orders") }
    }
  }
}
