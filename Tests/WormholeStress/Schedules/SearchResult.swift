#if FAULT_POINTS
  import WormholeSyscalls

  /// The counts of a search and what it found, as lines of text: searches are processes.
  struct SearchResult {
    var orders = 0
    var equal = 0
    var steps = 0
    var time = Duration.zero
    var isComplete = true
    /// The fingerprints of the orders, where they are wanted.
    var traces: Set<UInt64> = []
    /// The lines about a violation; the first one is the line for a replay.
    var report: [String] = []

    init() {}

    var lines: [String] {
      let numbers = [
        orders, equal, steps, Int(time / .milliseconds(1)), isComplete ? 1 : 0,
      ]
      return ["counts " + numbers.map(String.init).joined(separator: " ")]
        + traces.sorted().map { "trace \($0)" } + report.map { "report " + $0 }
    }

    /// Reads what another process has written; nil if the search has not come to its end.
    init?(_ text: String) {
      var isWhole = false
      for line in text.split(separator: "\n") {
        guard let space = line.firstIndex(of: " ") else { return nil }
        let rest = line[line.index(after: space)...]
        let numbers = rest.split(separator: " ").compactMap { UInt64($0) }
        switch line[..<space] {
        case "counts" where numbers.count == 5:
          let counts = numbers.map { Int($0) }
          (orders, equal, steps) = (counts[0], counts[1], counts[2])
          (time, isComplete) = (.milliseconds(counts[3]), counts[4] == 1)
          isWhole = true
        case "trace" where numbers.count == 1: traces.insert(numbers[0])
        case "report": report.append(String(rest))
        default: return nil
        }
      }
      guard isWhole else { return nil }
    }

    /// Adds the result of a search that ran at the same time.
    mutating func add(_ other: SearchResult) {
      orders += other.orders
      equal += other.equal
      steps += other.steps
      time = max(time, other.time)
      isComplete = isComplete && other.isComplete
      traces.formUnion(other.traces)
      if report.isEmpty { report = other.report }
    }

    /// Equal for equal sets of traces.
    private var sum: String { String(traces.reduce(0, &+), radix: 16) }

    func line(_ scenario: Scenario, _ limit: Int) -> String {
      "\(scenario.rawValue): \(orders) orders with at most \(limit) preemptions, "
        + (isComplete ? "all there are, " : "not all, ") + "and \(equal) equal to them, "
        + (traces.isEmpty ? "" : "\(traces.count) different (\(sum)), ")
        + "in \(Int(time / .milliseconds(1))) ms, \(rate) a second; "
        + "\(average) steps each: \(scenario.purpose)"
    }

    func drawnLine(_ scenario: Scenario) -> String {
      "\(scenario.rawValue): \(orders) drawn orders, in \(Int(time / .milliseconds(1))) ms, "
        + "\(rate) a second; \(average) steps each"
    }

    private var average: Int { steps / max(1, orders) }
    private var rate: Int { Int(Double(orders) / max(time / .seconds(1), 0.001)) }
  }
#endif
