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

  /// Prepares the workload in one of its sizes.
  init(size: Size) throws

  /// One operation of ours.
  func ours() throws
  /// One operation of what ours is compared with.
  func baseline() throws
}

extension Benchmark {
  static func requiredRatio(_ size: Size) -> Double? { nil }
}

/// How much of a workload is measured.
enum Size: String, CaseIterable {
  case small, large

  /// How long one side of a repetition runs.
  var duration: Duration { self == .small ? .milliseconds(60) : .milliseconds(400) }
}
