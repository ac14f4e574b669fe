/// Runs of half a second with two processes that only update, a hundred of them in the large size.
///
/// The row has the time of an update of the less served process, and as its baseline that of the
/// other process: the ratio is the share of the less served one. After each run, two processes
/// count in memory for the same time. The figures of these controls tell whether two processes had
/// a processor each: if not, a low share is a result of the host.
struct Fairness: Benchmark {
  static let isGated = false
  static let name = "fairness"
  static let summary = "an update of the less served of two processes, against one of the other"
  static let isPaired = true
  // The promise for two processes with a processor each. Other programs change single runs: the
  // median of all runs is compared.
  static func requiredRatio(_ size: Size) -> Double? { promised }

  private static let promised = 0.5

  private let size: Size
  private let runs: [FairnessRun]

  init(size: Size) throws {
    self.size = size
    let count = Measurement.isOnce ? 1 : size == .small ? 2 : 100
    runs = try (0..<count).map { _ in try FairnessRun(size) }
  }

  func ours() throws { _ = try FairnessRun.shares(.ours, size) }
  func baseline() throws { _ = try FairnessRun.shares(.floor, size) }

  func samples(ours isOurs: Bool) throws -> [Double]? {
    runs.map { 1e9 * FairnessRun.seconds / Double(isOurs ? $0.least : $0.most) }
  }

  func details() throws -> [Detail] {
    let shares = Measurement(samples: runs.map(\.fairness))
    let controls = Measurement(samples: runs.map(\.control))
    return [
      Detail("runs", Double(runs.count)),
      Detail("least to most served, median", shares.median),
      Detail("least to most served, minimum", shares.quantile(0)),
      Detail("runs below \(Self.promised)", Double(runs.count { $0.fairness < Self.promised })),
      Detail("longest wait, ms", (runs.map(\.longest).max() ?? 0) / 1e6),
      Detail("control: least to most, minimum", controls.quantile(0)),
      Detail("control: least share of a processor", runs.map(\.processor).min() ?? 0),
    ]
  }
}

/// The figures of a run and of its control.
private struct FairnessRun {
  /// The updates of the less and of the more served process.
  let least, most: Int
  /// The longest wait for an update, in nanoseconds.
  let longest: Double
  /// The counts of the slower counting process, relative to the counts of the faster.
  let control: Double
  /// The part of the time in which the slower counting process had a processor.
  let processor: Double

  var fairness: Double { Double(least) / Double(most) }

  static let seconds = Measurement.isOnce ? 0.1 : 0.5

  init(_ size: Size) throws {
    let updating = try Self.shares(.ours, size)
    let counting = try Self.shares(.idle, size)
    // A process without an update would have an infinite time for one.
    (least, most) = Self.ends(updating.map { max(1, $0.count) })
    longest = updating.map(\.longest).max() ?? 0
    let (fewest, highest) = Self.ends(counting.map { max(1, $0.count) })
    control = Double(fewest) / Double(highest)
    processor = counting.map(\.processor).min() ?? 0
  }

  static func shares(_ side: UpdateProcess.Side, _ size: Size) throws -> [UpdateProcess.Share] {
    try UpdateProcess.shares(side, size, processes: 2, seconds: seconds)
  }

  private static func ends(_ counts: [Int]) -> (least: Int, most: Int) {
    (counts.min() ?? 1, counts.max() ?? 1)
  }
}
