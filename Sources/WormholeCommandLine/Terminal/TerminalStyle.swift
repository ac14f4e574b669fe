import WormholeSyscalls

/// The colours of text in a terminal; none if the user does not want any.
package struct TerminalStyle: Sendable {
  package enum Tone: Sendable {
    case plain, title, good, bad, faint

    fileprivate var code: String? {
      switch self {
      case .plain: nil
      case .title: "1"
      case .good: "32"
      case .bad: "31"
      case .faint: "2"
      }
    }
  }

  private let isColoured: Bool

  package init(isColoured: Bool) { self.isColoured = isColoured }

  /// The style of standard output: with colours in a terminal, unless `NO_COLOR` is set or the
  /// terminal has none.
  package static var ofOutput: TerminalStyle {
    let isUnwanted = !(Processes.environment("NO_COLOR") ?? "").isEmpty
    let isDumb = Processes.environment("TERM") == "dumb"
    return TerminalStyle(
      isColoured: StandardStream.output.isTerminal && !isUnwanted && !isDumb)
  }

  package func paint(_ text: String, _ tone: Tone) -> String {
    guard isColoured, !text.isEmpty, let code = tone.code else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }

  /// Returns the number of columns that a text takes.
  package static func width(of text: String) -> Int {
    text.unicodeScalars.reduce(0) { sum, scalar in
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark: sum
      default: sum + (isWide(scalar) ? 2 : 1)
      }
    }
  }

  private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      true
    // Two of these letters are a flag, which takes two columns.
    case 0x1F1E6...0x1F1FF: false
    default: scalar.properties.isEmojiPresentation
    }
  }

  /// Returns the beginning of a painted line that fits into so many columns.
  package static func cut(_ line: String, to columns: Int) -> String {
    var (result, width, isCode) = ("", 0, false)
    for scalar in line.unicodeScalars {
      if scalar == "\u{1B}" { isCode = true }
      if !isCode {
        width += Self.width(of: String(scalar))
        if width > columns { continue }
      }
      // Codes behind the cut still end the colour.
      result.unicodeScalars.append(scalar)
      if isCode, scalar == "m" { isCode = false }
    }
    return result
  }
}
