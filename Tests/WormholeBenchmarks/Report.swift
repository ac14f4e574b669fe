import Foundation

/// The outcomes, formatted for people and for programs.
struct Report {
  var machine: String
  var outcomes: [Outcome] = []

  static let heading =
    pad("workload", 22) + pad("size", 7) + times(["median", "p99", "slowest", "baseline"])
    + right("ratio", 8) + right("needed", 8) + right("allocs", 9) + right("(theirs)", 9)

  static func lines(_ outcome: Outcome) -> String {
    let details = outcome.details.map { detail in
      pad("  " + detail.label, 49) + right(figure(detail.value), 10)
        + right(detail.limit.map { "at most " + figure($0) } ?? "", 18)
        + (detail.isMissed ? "  missed" : "")
    }
    let conditions = outcome.conditions.map { ["  baseline: " + $0] } ?? []
    return ([line(outcome)] + conditions + details).joined(separator: "\n")
  }

  private static func line(_ outcome: Outcome) -> String {
    let ours = outcome.ours
    let measured = [ours.median, ours.p99, ours.slowest, outcome.baseline.median]
    return pad(outcome.name, 22) + pad(outcome.size.rawValue, 7) + times(measured.map(time))
      + right(figure(outcome.ratio), 8)
      + right(outcome.required.map { String(format: "%g", $0) } ?? "-", 8)
      + right(count(ours.allocations), 9) + right(count(outcome.baseline.allocations), 9)
      + (outcome.isMissed ? "  missed" : "")
  }

  func json() throws -> String {
    struct Line: Encodable {
      var workload, size, machine: String
      var median, p99, slowest, baseline, ratio: Double
      var required, allocations, baselineAllocations: Double?
      var conditions: String?
      var details: [String: Double]
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try outcomes.map { outcome in
      let line = Line(
        workload: outcome.name, size: outcome.size.rawValue, machine: machine,
        median: outcome.ours.median, p99: outcome.ours.p99, slowest: outcome.ours.slowest,
        baseline: outcome.baseline.median, ratio: outcome.ratio, required: outcome.required,
        allocations: outcome.ours.allocations,
        baselineAllocations: outcome.baseline.allocations, conditions: outcome.conditions,
        details: Dictionary(
          outcome.details.map { ($0.label, $0.value) }, uniquingKeysWith: { $1 }))
      return String(decoding: try encoder.encode(line), as: UTF8.self)
    }.joined(separator: "\n")
  }

  static func time(_ nanoseconds: Double) -> String {
    switch nanoseconds {
    case ..<1e3: String(format: "%.0f ns", nanoseconds)
    case ..<1e6: String(format: "%.1f us", nanoseconds / 1e3)
    default: String(format: "%.1f ms", nanoseconds / 1e6)
    }
  }

  private static func count(_ value: Double?) -> String {
    value.map { String(format: "%.0f", $0) } ?? "-"
  }

  /// Formats three digits, or all integer digits of a longer number.
  private static func figure(_ value: Double) -> String {
    String(format: value < 10 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f", value)
  }

  /// Aligns the columns of the times.
  private static func times(_ texts: [String]) -> String {
    texts.map { right($0, 10) }.joined()
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text.padding(toLength: width, withPad: " ", startingAt: 0)
  }

  private static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }
}
