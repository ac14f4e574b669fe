/// A named workload, measured against something that does the same.
///
/// To add one: a file with a type that conforms, and its name in `Benchmarks.all`.
protocol Benchmark: SendableMetatype {
  /// The name on the command line.
  static var name: String { get }
  /// What is compared, in a few words.
  static var summary: String { get }
  /// How many times faster than the baseline ours has to be; nil if that is only reported.
  static func requiredRatio(_ size: Size) -> Double?
  /// Whether only measurements of the same moment compare: a disk is fast or slow for seconds.
  static var isPaired: Bool { get }

  /// Prepares the workload in one of its sizes.
  init(size: Size) throws

  /// One operation of ours.
  func ours() throws
  /// One operation of what ours is compared with.
  func baseline() throws
  /// What else there is to say, measured once.
  func details() throws -> [Detail]
}

extension Benchmark {
  static func requiredRatio(_ size: Size) -> Double? { nil }
  static var isPaired: Bool { false }
  func details() throws -> [Detail] { [] }
}

/// A figure beside the ratio.
struct Detail {
  var label: String
  var value: Double
  /// What it may not exceed: for counts, which do not depend on how busy the machine is.
  var limit: Double?

  init(_ label: String, _ value: Double, limit: Double? = nil) {
    self.label = label
    self.value = value
    self.limit = limit
  }

  var isMissed: Bool { limit.map { value > $0 } ?? false }
}

/// How much of a workload is measured.
enum Size: String, CaseIterable {
  case small, large

  /// How long one side of a repetition runs.
  var duration: Duration { self == .small ? .milliseconds(60) : .milliseconds(400) }
}
