import Foundation

/// A put that comes more than a second after the previous one, as in every interactive program.
///
/// The pauses let the caches of both processes grow cold, and each put is the first one for a
/// second: a put that waits for the disk shows here, and in no workload that puts all the time.
struct PutRarely: Benchmark {
  static let isGated = false
  static let name = "put-rare"
  static let summary = "a put every 1.2 seconds and the reply, against the bare calls in C"

  private let size: Size
  private let channels: Answering
  private let floor: FloorAnswering
  private let scratch: Scratch

  private static let pause = 1.2
  private var count: Int { size == .small ? 2 : 10 }

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
    try (0..<count).map { _ in
      Thread.sleep(forTimeInterval: Self.pause)
      return try ContinuousClock().measure { try isOurs ? ours() : baseline() }.nanoseconds
    }
  }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }
    let often = try Measurement.measure(for: .milliseconds(200)) { try ours() }
    let rare = Measurement(samples: try samples(ours: true) ?? [])
    return [
      Detail("rare, median, us", rare.median / 1000),
      Detail("rare, slowest, us", rare.slowest / 1000),
      Detail("often, median, us", often.median / 1000),
      Detail("rare to often", rare.median / often.median),
    ]
  }
}
