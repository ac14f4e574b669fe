import Testing
import WatchConnectivity
import WormholeTesting

/// Both sides of the app, as two processes, out of range and killed.
@Suite struct TwoSidesTests {
  private func wait(_ process: TestProcess, for line: String) async throws {
    try await eventually("'\(line)'") {
      try process.output.split(separator: "\n").contains { $0 == line }
    }
  }

  @Test func theWatchHearsOfEverySale() async throws {
    let container = try TemporaryContainer()
    let pairing = try Pairing(directory: container.path)
    let watch = try TestProcess(
      "CinemaWatch", in: container, environment: ["WORMHOLE_ROLE": "watch"])
    try await wait(watch, for: "activated")
    // Out of range the phone sells, and the watch is not notified.
    try pairing.setInRange(false)
    let phone = try TestProcess(
      "CinemaPhone", ["Metropolis", "M"], in: container, environment: ["WORMHOLE_ROLE": "phone"])
    try await wait(phone, for: "activated")
    #expect(try !watch.output.contains("sold"))
    try watch.kill()
    try pairing.setInRange(true)
    // The watch's next run is notified of both sales, in order, and the phone of the deliveries.
    let next = try TestProcess(
      "CinemaWatch", in: container, environment: ["WORMHOLE_ROLE": "watch"])
    try await wait(phone, for: "told of M")
    #expect(try next.output == "activated\nsold Metropolis\nsold M\n")
  }
}
