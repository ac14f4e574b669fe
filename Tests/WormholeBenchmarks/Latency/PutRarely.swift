import Foundation

/// A put that comes more than a second after the previous one, as in every interactive program.
///
/// The pauses let the caches of both processes grow cold, and each put is the first one for a
/// second: a put that waits for the disk shows here, and in no workload that puts all the time. In
/// the small size both processes share a processor; in the large size each process has its own, and
/// the details repeat the measurement with two processes without a binding.
struct PutRarely: Benchmark {
  static let isGated = false
  static let name = "put-rare"
  static let summary = "a put every 1.2 seconds and the reply, against the bare calls in C"

  private let size: Size
  private let channels: Answering
  private let floor: FloorAnswering
  private let scratch: Scratch

  private static let pause = 1.2
  private var count: Int { Measurement.isOnce ? 1 : size == .small ? 2 : 10 }

  init(size: Size) throws {
    self.size = size
    scratch = try Scratch()
    EchoProcess.pin(0)
    channels = try Answering(scratch.path, .init(size))
    floor = try FloorAnswering(scratch.path, .init(size))
    for _ in 0..<5 {
      try ours()
      try baseline()
    }
  }

  func ours() throws { try channels.exchange(rally: 1) }
  func baseline() throws { try floor.exchange(rally: 1) }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    try rarely { try isOurs ? ours() : baseline() }
  }

  /// Measures an operation some times, with a pause before each.
  private func rarely(_ operation: () throws -> Void) throws -> [Double] {
    try (0..<count).map { _ in
      Thread.sleep(forTimeInterval: Self.pause)
      return try ContinuousClock().measure { try operation() }.nanoseconds
    }
  }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Details come last; other workloads may use both processors.
    let bound = try times(channels)
    return try bound + (size == .large ? unboundTimes() : [])
  }

  private func times(_ channels: Answering, _ note: String = "") throws -> [Detail] {
    let often = try Measurement.measure(for: .milliseconds(200)) {
      try channels.exchange(rally: 1)
    }
    let rare = Measurement(samples: try rarely { try channels.exchange(rally: 1) })
    return [
      Detail("rare\(note), median, us", rare.median / 1000),
      Detail("rare\(note), slowest, us", rare.slowest / 1000),
      Detail("often\(note), median, us", often.median / 1000),
      Detail("rare to often\(note)", rare.median / often.median),
    ]
  }

  /// Measures a further pair of processes, bound to no processor.
  private func unboundTimes() throws -> [Detail] {
    EchoProcess.pin(-1)
    let scratch = try Scratch()
    defer { withExtendedLifetime(scratch) {} }
    let channels = try Answering(scratch.path, .unbound)
    for _ in 0..<5 { try channels.exchange(rally: 1) }
    return try times(channels, ", unbound")
  }
}
