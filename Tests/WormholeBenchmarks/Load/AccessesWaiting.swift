import Foundation
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Accesses that wait for each other, until the last one has ended.
///
/// The baseline makes the same number of accesses one after the other, without waiting.
struct AccessesWaiting: Benchmark {
  static let isGated = false
  static let name = "accesses-waiting"
  static let summary = "accesses that wait in a queue, against the same accesses without waiting"

  private let scratch: Scratch
  private let arbiters: Arbiters
  private let coordinator: Coordinator
  private let count: Int

  init(size: Size) throws {
    count = size == .small ? 20 : 2000
    scratch = try Scratch()
    arbiters = Arbiters(ContainerOptions(), root: scratch.path + "/groups")
    coordinator = Coordinator(arbiters)
    try baseline()
  }

  func ours() throws { _ = try drain() }
  func baseline() throws { try coordinator.write(scratch.path + "/file") { _ in } }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    if isOurs { return [try drain() / Double(count)] }
    let whole = try ContinuousClock().measure { for _ in 0..<count { try baseline() } }
    return [whole.nanoseconds / Double(count)]
  }

  /// Returns the time from the end of the first access to the end of the last, in nanoseconds.
  private func drain() throws -> Double {
    let ended = Monitor(0)
    let failure = Monitor<(any Error)?>(nil)
    let (arbiters, path, count) = (arbiters, scratch.path + "/file", count)
    let clock = ContinuousClock()
    var begin = clock.now
    try coordinator.write(path) { _ in
      for _ in 0..<count {
        try WormholeSyscalls.Thread("waiter") {
          // Accesses of one coordinator do not wait for each other.
          do { try Coordinator(arbiters).write(path, within: .seconds(300)) { _ in } } catch {
            failure.withLock { $0 = error }
          }
          ended.signal { $0 += 1 }
        }.detach()
      }
      try waitUntilAllWait(failure)
      begin = clock.now
    }
    guard ended.wait(until: .now + .seconds(300), { $0 == count ? true : nil }) == true else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
    return (clock.now - begin).nanoseconds
  }

  private func waitUntilAllWait(_ failure: Monitor<(any Error)?>) throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
      let waiting = try arbiters.all().map { room in
        try room.container.accesses().count { $0.state == "waiting" }
      }
      if waiting.reduce(0, +) == count { return }
      if let failure = failure.withLock({ $0 }) { throw failure }
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured(Self.name) }
      Foundation.Thread.sleep(forTimeInterval: 0.02)
    }
  }
}
