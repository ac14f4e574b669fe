import Foundation
import MMWormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The time from a message of MMWormhole to the call of a listener in another process, there and
/// back, against a put and its watcher.
///
/// A listener is called on one of the program's queues, and so is the watcher of the baseline. A
/// put whose watcher has no queue is faster than a pass; waking the queue's thread is the larger
/// part of the difference.
struct PassToListen: Benchmark {
  static let name = "pass-to-listen"
  static let summary =
    "ten times there and back with MMWormhole, against a put and its watcher, on queues"
  static let isPaired = true
  /// At most 1.3 times the time of the baseline, plus a tenth for disturbances by other processes.
  static func requiredRatio(_ size: Size) -> Double? { size == .small ? 0.7 : nil }

  private let passing: Passing
  private let channels: Answering
  private let scratch: Scratch

  init(size: Size) throws {
    scratch = try Scratch()
    EchoProcess.pin(0)
    passing = try Passing(scratch.path, size)
    channels = try Answering(scratch.path, .init(size), onQueue: true)
    for _ in 0..<5 {
      try passing.exchange()
      try channels.exchange()
    }
  }

  func ours() throws { try passing.exchange() }
  func baseline() throws { try channels.exchange() }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }
    let there = try Measurement.measure(for: .milliseconds(200)) { try passing.exchange() }
    let put = try Measurement.measure(for: .milliseconds(200)) { try channels.exchange() }
    // The counts of this process, in ten puts and ten reads; a pass also checks its link, and makes
    // no further calls.
    let puts = try Detail.calls("calls of puts, ten times there and back", limit: 230) {
      try channels.exchange()
    }
    return [
      puts,
      try Detail.calls(
        "calls, ten times there and back", limit: puts.value + Double(PutToWatch.rally) + 1
      ) { try passing.exchange() },
      Detail("one way, us", there.median / Double(2000 * PutToWatch.rally)),
      Detail("one way of a put, us", put.median / Double(2000 * PutToWatch.rally)),
      Detail("times a put", there.median / put.median),
    ]
  }
}

/// Both ends of the exchange through MMWormhole.
final class Passing {
  private static let group = "group.bench"

  private let wormhole: MMWormhole
  private let heard: Rally
  private let other: Child

  init(_ path: String, _ size: Size) throws {
    let wormhole = try Self.open(path)
    let heard = Rally()
    wormhole.listenForMessage(withIdentifier: "back") { message in
      guard let next = heard.next(after: message as? Int ?? 0) else { return }
      wormhole.passMessageObject(next as NSNumber, identifier: "there")
    }
    (self.wormhole, self.heard) = (wormhole, heard)
    other = try EchoProcess.start("pass", .init(size), path)
    while !isAnswered(rally: 1, within: .milliseconds(50)) {}
  }

  deinit {
    wormhole.stopListeningForMessage(withIdentifier: "back")
    try? other.send(.kill)
    _ = try? other.wait()
  }

  func exchange() throws {
    guard isAnswered(rally: PutToWatch.rally, within: .seconds(5)) else {
      throw BenchmarkError.nothingMeasured(PassToListen.name)
    }
  }

  private func isAnswered(rally: Int, within time: Duration) -> Bool {
    heard.isAnswered(rally, within: time) {
      wormhole.passMessageObject($0 as NSNumber, identifier: "there")
    }
  }

  private static func open(_ path: String) throws -> MMWormhole {
    ContainerLocation.givenRoot = path
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.listenerQueue = DispatchQueue(label: "listener")
    return wormhole
  }

  static func echo(_ path: String) throws {
    let wormhole = try open(path)
    wormhole.listenForMessage(withIdentifier: "there") { message in
      wormhole.passMessageObject(message as? NSNumber, identifier: "back")
    }
    _ = Monitor(()).wait(until: .now + .seconds(120)) { _ in Bool?.none }
  }
}
