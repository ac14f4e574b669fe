#if FAULT_POINTS
  import WormholeSyscalls

  /// The counts of a search and what it found, as lines of text: searches are processes.
  struct SearchResult {
    var orders = 0
    var equal = 0
    var drawn = 0
    var steps = 0
    /// The times of the systematic and of the drawn part.
    var time = Duration.zero
    var drawnTime = Duration.zero
    var isComplete = true
    var users: [UInt64: UInt32] = [:]
    var relied: [UInt64: UInt32] = [:]
    /// The lines about a violation; the first one is the line for a replay.
    var report: [String] = []

    init() {}

    var lines: [String] {
      let numbers = [
        orders, equal, drawn, steps, Int(time / .milliseconds(1)),
        Int(drawnTime / .milliseconds(1)), isComplete ? 1 : 0,
      ]
      return ["counts " + numbers.map(String.init).joined(separator: " ")]
        + Self.lines("users", users) + Self.lines("relied", relied)
        + report.map { "report " + $0 }
    }

    static func lines(_ word: String, _ table: [UInt64: UInt32]) -> [String] {
      table.map { "\(word) \($0.key) \($0.value)" }
    }

    /// Reads what another process has written; nil if the search has not come to its end.
    init?(_ text: String) {
      var isWhole = false
      for line in text.split(separator: "\n") {
        guard let space = line.firstIndex(of: " ") else { return nil }
        let rest = line[line.index(after: space)...]
        let numbers = rest.split(separator: " ").compactMap { UInt64($0) }
        switch line[..<space] {
        case "counts" where numbers.count == 7:
          let counts = numbers.map { Int($0) }
          (orders, equal, drawn, steps) = (counts[0], counts[1], counts[2], counts[3])
          (time, drawnTime) = (.milliseconds(counts[4]), .milliseconds(counts[5]))
          isComplete = counts[6] == 1
          isWhole = true
        case "users" where numbers.count == 2: users[numbers[0]] = UInt32(numbers[1])
        case "relied" where numbers.count == 2: relied[numbers[0]] = UInt32(numbers[1])
        case "report": report.append(String(rest))
        default: return nil
        }
      }
      guard isWhole else { return nil }
    }

    /// Reads a table's lines.
    static func table(_ text: String) -> [UInt64: UInt32] {
      text.split(separator: "\n").reduce(into: [:]) { table, line in
        let numbers = line.split(separator: " ").compactMap { UInt64($0) }
        if numbers.count == 2 { table[numbers[0]] = UInt32(numbers[1]) }
      }
    }

    /// Adds the result of a search that ran at the same time.
    mutating func add(_ other: SearchResult) {
      orders += other.orders
      equal += other.equal
      drawn += other.drawn
      steps += other.steps
      time = max(time, other.time)
      drawnTime = max(drawnTime, other.drawnTime)
      isComplete = isComplete && other.isComplete
      users.merge(other.users) { $0 | $1 }
      relied.merge(other.relied) { $0 | $1 }
      if report.isEmpty { report = other.report }
    }

    /// Whether no search has left out an order for a reason that another search has seen
    /// to be wrong.
    func isSound(processes: Int) -> Bool {
      relied.allSatisfy { object, readers in
        (0..<Turnstile.playerLimit).allSatisfy { reader in
          readers & 1 << UInt32(reader) == 0
            || !Footprint.isOther(users[object, default: 0], than: reader, processes)
        }
      }
    }

    func line(_ scenario: Scenario, _ limit: Int) -> String {
      func rate(_ count: Int, _ time: Duration) -> String {
        "\(Int(Double(count) / max(time / .seconds(1), 0.001))) a second"
      }
      let isAll = isComplete && isSound(processes: scenario.processes)
      return "\(scenario.rawValue): \(orders) orders with at most \(limit) preemptions, "
        + (isAll ? "all there are, " : "not all, ")
        + "and \(equal) equal to them, in \(Int(time / .milliseconds(1))) ms, "
        + "\(rate(orders, time)); \(drawn) drawn ones, \(rate(drawn, drawnTime)); "
        + "\(steps / max(1, orders + drawn)) steps each: \(scenario.purpose)"
    }
  }
#endif
