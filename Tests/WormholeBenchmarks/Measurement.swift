/// The time of a number of repetitions of one operation.
struct Measurement {
  /// Nanoseconds per operation, for each batch, in ascending order.
  private(set) var samples: [Double] = []
  var allocations: Double?

  var median: Double { quantile(0.5) }
  var p99: Double { quantile(0.99) }
  /// The time of an operation in the slowest batch.
  var slowest: Double { quantile(1) }

  func quantile(_ part: Double) -> Double {
    guard !samples.isEmpty else { return .nan }
    return samples[min(samples.count - 1, Int(part * Double(samples.count)))]
  }

  init(samples: [Double] = []) { self.samples = samples.sorted() }

  /// Whether each operation is measured once, without any warm-up: a test only runs the workloads.
  ///
  /// A constant of the command line, because workloads also measure details, without the options.
  static let isOnce = CommandLine.arguments.contains(Options.once)

  /// Measures one side of a workload.
  static func of(_ benchmark: some Benchmark, ours isOurs: Bool, _ size: Size) throws -> Self {
    if let samples = try benchmark.samples(ours: isOurs) { return Measurement(samples: samples) }
    return try measure(for: size.duration) {
      if isOurs { try benchmark.ours() } else { try benchmark.baseline() }
    }
  }

  /// Runs an operation for a given time, in batches long enough for the clock.
  static func measure(for duration: Duration, _ operation: () throws -> Void) rethrows -> Self {
    let clock = ContinuousClock()
    if isOnce { return Measurement(samples: [try clock.measure { try operation() }.nanoseconds]) }
    var batch = 1
    while true {
      let took = try clock.measure { for _ in 0..<batch { try operation() } }
      if took > .microseconds(50) || batch >= 1 << 20 { break }
      batch *= 2
    }
    var measurement = Measurement()
    let start = clock.now
    repeat {
      let took = try clock.measure { for _ in 0..<batch { try operation() } }
      measurement.samples.append(took.nanoseconds / Double(batch))
    } while clock.now - start < duration
    measurement.samples.sort()
    measurement.allocations = try Allocations.count(operation)
    return measurement
  }
}

extension Duration {
  var nanoseconds: Double {
    Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
  }
}

/// The result of a workload in one size.
struct Outcome {
  var name: String
  var size: Size
  var ours: Measurement
  var baseline: Measurement
  /// The speed of the library as a multiple of the baseline's speed.
  var ratio: Double { baseline.median / ours.median }
  var required: Double?
  var conditions: String?
  var details: [Detail] = []

  var isMissed: Bool {
    required.map { ratio < $0 } ?? false || details.contains(where: \.isMissed)
  }

  /// Runs the library's side alone, for long enough for a profiler.
  static func run(_ type: any Benchmark.Type, _ size: Size) throws {
    let benchmark = try type.init(size: size)
    _ = try Measurement.measure(for: .seconds(2)) { try benchmark.ours() }
  }

  /// Measures both sides alternately, so that a disturbance of the host affects both sides.
  ///
  /// The result is the least disturbed measurement of each side; or, for pairs, the median pair.
  static func of(_ type: any Benchmark.Type, _ size: Size, repetitions: Int) throws -> Outcome {
    var benchmark = try type.init(size: size)
    var ours: [Measurement] = []
    var baseline: [Measurement] = []
    for _ in 0..<(type.isPaired ? 2 * repetitions - 1 : repetitions) {
      // A new instance has its files at a different location: the location of one side may be slow.
      if type.isPaired, !ours.isEmpty { benchmark = try type.init(size: size) }
      baseline.append(try Measurement.of(benchmark, ours: false, size))
      ours.append(try Measurement.of(benchmark, ours: true, size))
    }
    let pairs = zip(ours, baseline).sorted { $0.1.median / $0.0.median < $1.1.median / $1.0.median }
    let best = (ours.min { $0.median < $1.median }, baseline.min { $0.median < $1.median })
    let chosen = type.isPaired ? (pairs[pairs.count / 2].0, pairs[pairs.count / 2].1) : best
    guard case (let ours?, let baseline?) = chosen
    else { throw BenchmarkError.nothingMeasured(type.name) }
    return Outcome(
      name: type.name, size: size, ours: ours, baseline: baseline,
      required: type.requiredRatio(size), conditions: benchmark.conditions,
      details: try benchmark.details())
  }
}

enum BenchmarkError: Error {
  case nothingMeasured(String)
  case wrongResult(String)
  /// The machine does not have a program or library.
  case absent(String)
  /// A system call of the baseline failed.
  case floor(String)
}
