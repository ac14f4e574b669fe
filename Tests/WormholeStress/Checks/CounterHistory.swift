/// The additions to one channel, and the check whether an addition was lost.
struct CounterHistory {
  private let channel: String
  /// The sum that each acknowledged addition returned.
  private var sums: [(begin: Int64, end: Int64, sum: Int)] = []
  /// The number of additions whose effect is unknown.
  private var unsure = 0

  init(_ channel: String) { self.channel = channel }

  var count: Int { sums.count + unsure }

  mutating func add(_ call: MadeCall) {
    switch call.result {
    case .number(let sum)?: sums.append((call.begin, call.end, sum))
    case .refused?: break
    default: unsure += 1
    }
  }

  /// - Parameter last: the final value of the channel.
  func violations(last: Int) -> [Violation] {
    var found: [Violation] = []
    var seen: Set<Int> = []
    for (_, _, sum) in sums where !seen.insert(sum).inserted {
      found.append(Violation(.lost, "two additions to '\(channel)' both came to \(sum)"))
    }
    if let most = seen.max(), most > last {
      found.append(Violation(.lost, "'\(channel)' is \(last), and was \(most) before"))
    }
    if last < sums.count || last > sums.count + unsure {
      found.append(
        Violation(
          .lost,
          "'\(channel)' is \(last) after \(sums.count) additions for sure and \(unsure) perhaps"))
    }
    let ended = sums.sorted { $0.end < $1.end }
    var next = 0
    var highest = 0
    for addition in sums.sorted(by: { $0.begin < $1.begin }) {
      while next < ended.count, ended[next].end < addition.begin {
        highest = max(highest, ended[next].sum)
        next += 1
      }
      if addition.sum <= highest {
        found.append(
          Violation(
            .order, "an addition to '\(channel)' came to \(addition.sum) after \(highest)"))
      }
    }
    return found
  }
}
