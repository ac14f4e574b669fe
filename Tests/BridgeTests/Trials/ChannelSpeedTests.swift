import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// How long a change of a channel takes to be noticed on another machine, beside one machine.
///
/// The times are printed and not judged: they belong to the machine and its load.
@Suite(.blocking, .serialized, .notSanitized("about times")) struct ChannelSpeedTests {
  private static let count = 300

  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func notificationBesideOneMachine() throws {
    guard let machines = try BridgedMachines.start() else { return }
    let home = machines.here.container.channel("seats", of: Int.self)
    try home.put(0)
    let naming = try run(
      Programs.built("wormhole"), ["--container", machines.here.path, "bridge", "channel", "seats"])
    try #require(naming.status == .exited(0), "\(naming.errors)")
    let away = machines.there.container.channel("seats", of: Int.self)
    try eventually("the copy is there", within: .seconds(60)) { try away.value == 0 }
    let beside = try SharedContainer(directory: machines.here.path).channel("seats", of: Int.self)
    var report = [
      try Self.notices("one machine", home, beside),
      try Self.notices("another machine", home, away),
    ]
    var times: [Double] = []
    for _ in 0..<Self.count {
      let start = Instant.now
      _ = try away.update { $0 = ($0 ?? 0) + 1 }
      times.append((Instant.now - start) / .milliseconds(1))
    }
    report.append("update on another machine, decided at the home: \(Self.summary(times))")
    times = []
    for _ in 0..<Self.count {
      let start = Instant.now
      _ = try home.update(durability: .power) { $0 = ($0 ?? 0) + 1 }
      times.append((Instant.now - start) / .milliseconds(1))
    }
    report.append("update at home with .power: \(Self.summary(times))")
    print(report.joined(separator: "\n"))
  }

  /// The times from before a put at home until a watcher has the value.
  private static func notices(
    _ what: String, _ home: Channel<Int>, _ watched: Channel<Int>
  ) throws -> String {
    let seen = Monitor<(value: Int, at: Instant)>((0, .now))
    let watching = try watched.watch { snapshot in
      let now = Instant.now
      if let value = snapshot.value { seen.signal { $0 = (value, now) } }
    }
    defer { watching.stop() }
    var times: [Double] = []
    for number in 1...count {
      let value = 1000 + number
      let start = Instant.now
      try home.put(value)
      let at = seen.wait(until: .now + .seconds(60)) { $0.value == value ? $0.at : nil }
      times.append((try #require(at) - start) / .milliseconds(1))
      // The home's bridge publishes at most 20 contents in a second.
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(60)) { _ in nil }
    }
    try home.put(0)
    return "notification on \(what): \(summary(times))"
  }

  private static func summary(_ times: [Double]) -> String {
    let sorted = times.sorted()
    func at(_ share: Double) -> Double {
      (sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] * 100).rounded() / 100
    }
    return "p50 \(at(0.5)) ms, p99 \(at(0.99)) ms"
  }
}
