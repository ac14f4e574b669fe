import Printing
import Testing
import Wormhole
import WormholeTesting

/// A service with a configuration that reloads itself, and workers with a queue and a lock.
@Suite struct PrintShopTests {
  @Test func jobsSurviveAKilledWorkerAndABadConfiguration() async throws {
    let container = try TemporaryContainer()
    let shared = try await container.open()
    let shop = PrintShop(shared)
    let service = try TestProcess("PrintService", [container.path], in: container)
    try await service.waitForOutput("copies: 1\n")
    try await shop.config.update { $0.copies = 2 }
    try await service.waitForOutput("copies: 2\n")
    await #expect(throws: PrintShop.TooManyCopies.self) {
      try await shop.config.update { $0.copies = 11 }
    }
    // Another program is not bound by the check: the service keeps the last good configuration.
    try await shared.channel("print-config", of: String.self).put("two")

    let desk = try await shared.join(as: "desk")
    let printing = desk.peer("print-service")
    var ids: [String] = []
    for number in 1...20 {
      ids.append(try await printing.request(PrintRequest(text: "page \(number)")))
    }
    let workers = try (1...2).map { _ in
      try TestProcess("PrintWorker", [container.path], in: container)
    }
    for worker in workers { try await worker.waitForOutput("working\n") }
    try workers[0].kill()
    try await eventually("all is printed") { try await shop.printed.value?.count == 20 }
    #expect(try await shop.printed.value == Dictionary(uniqueKeysWithValues: ids.map { ($0, 2) }))

    for process in [service, workers[1]] {
      try process.terminate()
      #expect(try await process.exitStatus() == .exited(0))
      #expect(try process.output.hasSuffix("ended in order\n"))
    }
    #expect(try shop.jobs.messages.isEmpty && shop.jobs.deadLetters.isEmpty)
  }

  @Test func aSecondServiceStandsBy() async throws {
    let container = try TemporaryContainer()
    let first = try TestProcess("PrintService", [container.path], in: container)
    try await first.waitForOutput("copies: 1\n")
    let second = try TestProcess("PrintService", [container.path], in: container)
    let desk = try await container.open().join(as: "desk")
    _ = try await desk.peer("print-service").request(PrintRequest(text: "one"))
    try first.kill()
    try await second.waitForOutput("copies: 1\n")
    _ = try await desk.peer("print-service").request(PrintRequest(text: "two"))
    try second.terminate()
    #expect(try await second.exitStatus() == .exited(0))
  }
}
