import Foundation
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Accesses that wait for each other, until the last one has ended.
///
/// The baseline makes the same number of accesses one after the other, without waiting.
struct AccessesWaiting: Benchmark {
  static let name = "accesses-waiting"
  static let summary = "accesses that wait in a queue, against the same accesses without waiting"

  private let size: Size
  private let scratch: Scratch
  private let coordinator: Coordinator
  private var count: Int { size == .small ? 20 : 2000 }

  init(size: Size) throws {
    self.size = size
    scratch = try Scratch()
    coordinator = Coordinator(Arbiters(ContainerOptions(), root: scratch.path + "/groups"))
    try baseline()
  }

  func ours() throws { _ = try drain() }
  func baseline() throws { try coordinator.write(scratch.path + "/file") { _ in } }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    if isOurs { return [try drain()] }
    return [
      try ContinuousClock().measure { for _ in 0..<count { try baseline() } }.nanoseconds
    ]
  }

  /// Returns the time from the end of the first access to the end of the last, in nanoseconds.
  private func drain() throws -> Double {
    let ended = Monitor(0)
    let (coordinator, path, count) = (coordinator, scratch.path + "/file", count)
    let clock = ContinuousClock()
    var begin = clock.now
    try coordinator.write(path) { _ in
      for _ in 0..<count {
        try WormholeSyscalls.Thread("waiter") {
          _ = try? coordinator.write(path, within: .seconds(300)) { _ in }
          ended.signal { $0 += 1 }
        }.detach()
      }
      try waitUntilAllWait()
      begin = clock.now
    }
    guard ended.wait(until: .now + .seconds(300), { $0 == count ? true : nil }) == true else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
    return (clock.now - begin).nanoseconds
  }

  private func waitUntilAllWait() throws {
    let root = URL(fileURLWithPath: scratch.path + "/groups")
    let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    let waiting = files?.compactMap { $0 as? URL }.first {
      $0.path.hasSuffix("coordination/waiting")
    }
    guard let waiting else { throw BenchmarkError.nothingMeasured(Self.name) }
    let deadline = ContinuousClock.now + .seconds(120)
    while try FileManager.default.contentsOfDirectory(atPath: waiting.path).count < count {
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured(Self.name) }
      Foundation.Thread.sleep(forTimeInterval: 0.01)
    }
  }
}
