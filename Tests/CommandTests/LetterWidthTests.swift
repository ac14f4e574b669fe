import TestTraits
import Testing
import WormholeCommandLine

/// The columns that letters take in a terminal, by which tables are aligned.
@Suite(.blocking) struct LetterWidthTests {
  @Test(arguments: [
    ("abc", 3), ("\u{E9}", 1), ("e\u{301}", 1), ("\u{65E5}\u{672C}", 4), ("\u{1100}", 2),
    ("\u{115F}", 2), ("\u{2E80}", 2), ("\u{D55C}", 2), ("\u{F900}", 2),
    ("\u{FE30}", 2), ("\u{FF01}", 2), ("\u{FF60}", 2), ("\u{FF61}", 1), ("\u{FF8A}", 1),
    ("\u{1F3AC}", 2),
  ])
  func aLetterTakesItsColumns(_ text: String, _ width: Int) {
    #expect(TerminalStyle.width(of: text) == width, "\(text.debugDescription)")
  }

  /// The ideographs of the second and third plane are as wide as those of the first.
  @Test(arguments: ["\u{20000}", "\u{2F81A}", "\u{30000}"])
  func aRareIdeographTakesTwoColumns(_ text: String) {
    #expect(TerminalStyle.width(of: text) == 2, "\(text.debugDescription)")
  }

  /// Some signs among narrow ones are as wide as those of the pictures' own block.
  @Test(arguments: [
    ("\u{2705}", 2), ("\u{274C}", 2), ("\u{23F0}", 2), ("\u{2B50}", 2), ("\u{FFE5}", 2),
    ("\u{FFE6}", 2), ("\u{FFE8}", 1), ("\u{2713}", 1), ("1", 1), ("\u{A9}", 1),
    ("1\u{20DD}", 1), ("\u{1F1E9}\u{1F1EA}", 2),
  ])
  func aSignTakesItsColumns(_ text: String, _ width: Int) {
    #expect(TerminalStyle.width(of: text) == width, "\(text.debugDescription)")
  }

  @Test func aTableIsAlignedByTheWidthOfItsLetters() {
    let rows: [[Listing.Cell]] = [[.init("\u{FF01}a"), "x"], [.init("abc"), "y"]]
    let lines = Listing.lines(["N", "V"], rows, TerminalStyle(isColoured: false))
    #expect(lines == ["N    V", "\u{FF01}a  x", "abc  y"])
  }
}
