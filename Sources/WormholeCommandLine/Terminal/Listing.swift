import WormholeSyscalls

/// A list of rows: in a terminal, with a header, aligned columns and colour; otherwise a bare line
/// for each row, with tabs between the fields.
///
/// Rows are kept until the widths are known, and a bounded number of them: later rows are aligned
/// by the widths of the earlier ones, and each is written at once.
package struct Listing {
  /// A field of a row.
  package struct Cell: Sendable, ExpressibleByStringLiteral {
    package let text: String
    package let tone: TerminalStyle.Tone

    package init(_ text: String, _ tone: TerminalStyle.Tone = .plain) {
      (self.text, self.tone) = (text, tone)
    }

    package init(stringLiteral text: String) { self.init(text) }
  }

  private let output: Output
  private let titles: [String]
  private let numbers: Set<Int>
  /// Whether the rows are aligned, with a header; otherwise cells need no tone.
  package let isTable: Bool
  private let style: TerminalStyle
  /// The bytes of a bare line, in memory that all lines share.
  private var bareLine: [UInt8] = []
  private var waiting: [[Cell]] = []
  private var widths: [Int]?

  /// The number of rows that determine the widths.
  private static let sample = 500

  /// - Parameters:
  ///   - titles: the header in a terminal.
  ///   - numbers: the indices of the columns that are aligned at their right edge.
  package init(_ output: Output, _ titles: [String], numbers: Set<Int> = []) {
    (self.output, self.titles, self.numbers) = (output, titles, numbers)
    isTable = !output.isJSON && StandardStream.output.isTerminal
    style = TerminalStyle.ofOutput
  }

  /// Adds a row.
  ///
  /// - Parameter bare: the line without a terminal; by default the fields with tabs between.
  package mutating func add(_ cells: [Cell], bare: String? = nil) throws {
    guard isTable else {
      return try output.write(line: bare ?? cells.map(\.text).joined(separator: "\t"))
    }
    if widths != nil { return try write([cells]) }
    waiting.append(cells)
    if waiting.count == Self.sample { try finish() }
  }

  /// Adds a row where rows are not aligned: fields, each on one line, with tabs between; a dash
  /// stands for an unknown field.
  ///
  /// A long queue has many rows: none has cells, or a string for its line.
  package mutating func add(bare fields: [String?]) throws {
    bareLine.removeAll(keepingCapacity: true)
    for (index, field) in fields.enumerated() {
      if index > 0 { bareLine.append(UInt8(ascii: "\t")) }
      bareLine.append(contentsOf: try (field ?? "-").inOneLine().utf8)
    }
    bareLine.append(UInt8(ascii: "\n"))
    try output.write(bareLine)
  }

  /// Writes the rows that were kept.
  package mutating func finish() throws {
    guard isTable, widths == nil, !waiting.isEmpty else { return }
    let header = titles.map { Cell($0, .title) }
    widths = Self.widths(of: [header] + waiting)
    try write([header] + waiting)
    waiting = []
  }

  private func write(_ rows: [[Cell]]) throws {
    for row in rows {
      try output.write(line: Self.line(row, widths ?? [], numbers, style))
    }
  }

  /// Returns the aligned lines of a table, with its header first; none for a table without rows.
  package static func lines(
    _ titles: [String], _ rows: [[Cell]], numbers: Set<Int> = [], _ style: TerminalStyle
  ) -> [String] {
    guard !rows.isEmpty else { return [] }
    let rows = [titles.map { Cell($0, .title) }] + rows
    let widths = widths(of: rows)
    return rows.map { line($0, widths, numbers, style) }
  }

  private static func widths(of rows: [[Cell]]) -> [Int] {
    var widths: [Int] = []
    for row in rows {
      for (index, cell) in row.enumerated() {
        if index == widths.count { widths.append(0) }
        widths[index] = max(widths[index], TerminalStyle.width(of: cell.text))
      }
    }
    return widths
  }

  private static func line(
    _ cells: [Cell], _ widths: [Int], _ numbers: Set<Int>, _ style: TerminalStyle
  ) -> String {
    var line = ""
    var gap = 0
    for (index, cell) in cells.enumerated() {
      let width = index < widths.count ? widths[index] : 0
      let rest = max(0, width - TerminalStyle.width(of: cell.text))
      let isRight = numbers.contains(index)
      line += String(repeating: " ", count: gap + (isRight ? rest : 0))
      line += style.paint(cell.text, cell.tone)
      // No spaces at the end of a line.
      gap = 2 + (isRight ? 0 : rest)
    }
    return line
  }
}
