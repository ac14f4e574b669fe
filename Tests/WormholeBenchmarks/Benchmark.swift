/// A named workload, measured against a baseline that does the same work.
///
/// To add a workload: add a file with a conforming type, and its name in `Benchmarks.all`.
protocol Benchmark: SendableMetatype {
  /// The name on the command line.
  static var name: String { get }
  /// The compared operations, in a few words.
  static var summary: String { get }
  /// The minimum ratio of the library's speed to the baseline's; nil if the ratio is only reported.
  static func requiredRatio(_ size: Size) -> Double?
  /// Whether `--gate` measures the workload if none is named; the others are only reported.
  static var isGated: Bool { get }
  /// Whether only measurements of the same moment are comparable: a disk is fast or slow for
  /// seconds.
  static var isPaired: Bool { get }

  /// Prepares the workload in one of its sizes.
  init(size: Size) throws

  /// Runs one operation of the library.
  func ours() throws
  /// Runs one operation of the baseline.
  func baseline() throws
  /// Measures one side in a way of its own: an operation with a pause before it, for example.
  ///
  /// - Returns: nanoseconds, one figure for each operation; nil to repeat `ours` or `baseline`.
  func samples(ours isOurs: Bool) throws -> [Double]?
  /// Returns further figures, measured once.
  func details() throws -> [Detail]
  /// The conditions of the baseline that its row names; nil if the summary names them all.
  ///
  /// A system beside the library has its durability and its processor here.
  var conditions: String? { get }
}

extension Benchmark {
  static func requiredRatio(_ size: Size) -> Double? { nil }
  static var isGated: Bool { true }
  static var isPaired: Bool { false }
  func samples(ours isOurs: Bool) throws -> [Double]? { nil }
  func details() throws -> [Detail] { [] }
  var conditions: String? { nil }
}

/// A figure in addition to the ratio.
struct Detail {
  var label: String
  var value: Double
  /// The maximum of the value: for counts, which do not depend on the load of the host.
  var limit: Double?

  init(_ label: String, _ value: Double, limit: Double? = nil) {
    self.label = label
    self.value = value
    self.limit = limit
  }

  var isMissed: Bool { limit.map { value > $0 } ?? false }
}

/// The size of a workload.
enum Size: String, CaseIterable {
  case small, large

  /// The duration of one side of a repetition.
  var duration: Duration { self == .small ? .milliseconds(60) : .milliseconds(400) }
}
