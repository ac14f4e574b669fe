import Foundation

/// A picture of a report: for each workload, the library's median and the baseline's.
///
/// The bars of a workload share a scale, so that nanoseconds and milliseconds fit on one page.
struct Plot {
  private let report: Report

  init(_ report: Report) { self.report = report }

  private static let width = 760.0
  private static let left = 230.0
  private static let longest = 380.0
  private static let row = 34.0
  private static let top = 64.0

  var svg: String {
    let height = Self.top + Self.row * Double(report.outcomes.count) + 16
    let rows = report.outcomes.enumerated().map { bars($1, at: Self.top + Self.row * Double($0)) }
    return """
      <svg xmlns="http:\("//www.w3").org/2000/svg" viewBox="0 0 \(Self.text(Self.width)) \
      \(Self.text(height))" font-family="sans-serif" font-size="11">
      <title>Medians of the library and of its baselines</title>
      <desc>\(Self.escaped(report.machine))</desc>
      <rect width="100%" height="100%" fill="#ffffff"/>
      <text x="12" y="22" font-size="14">Medians; shorter is faster</text>
      <text x="12" y="38" fill="#555555">\(Self.escaped(report.machine))</text>
      <rect x="12" y="46" width="10" height="8" fill="#2a6fb0"/><text x="26" y="54">Wormhole</text>
      <rect x="96" y="46" width="10" height="8" fill="#b0b0b0"/><text x="110" y="54">baseline</text>
      \(rows.joined(separator: "\n"))
      </svg>

      """
  }

  private func bars(_ outcome: Outcome, at y: Double) -> String {
    let (ours, baseline) = (outcome.ours.median, outcome.baseline.median)
    let scale = Self.longest / max(ours, baseline, .leastNonzeroMagnitude)
    return """
      <text x="12" y="\(Self.text(y + 16))">\(Self.escaped(outcome.name)), \
      \(outcome.size.rawValue)</text>
      \(Self.bar(ours * scale, at: y + 4, "#2a6fb0", Report.time(ours)))
      \(Self.bar(baseline * scale, at: y + 16, "#b0b0b0", Report.time(baseline)))
      """
  }

  private static func bar(_ length: Double, at y: Double, _ color: String, _ label: String)
    -> String
  {
    """
    <rect x="\(text(left))" y="\(text(y))" width="\(text(max(1, length)))" height="10" \
    fill="\(color)"/><text x="\(text(left + length + 6))" y="\(text(y + 9))">\(label)</text>
    """
  }

  private static func text(_ number: Double) -> String { String(format: "%.1f", number) }

  private static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
      .replacingOccurrences(of: ">", with: "&gt;")
  }
}
