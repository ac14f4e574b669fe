/// The choice of the mask: by the penalty of a matrix for being hard to read, as defined by the
/// standard.
extension QRMatrix {
  /// Returns the matrix with the mask that has the lowest penalty among the eight, and its number.
  func masked() -> (mask: Int, matrix: QRMatrix) {
    var best = (mask: 0, penalty: Int.max, matrix: self)
    for mask in 0..<8 {
      let masked = masked(by: mask)
      let penalty = masked.penalty
      if penalty < best.penalty { best = (mask, penalty, masked) }
    }
    return (best.mask, best.matrix)
  }

  /// The sum of the four penalties.
  var penalty: Int {
    var sum = 0
    var dark = 0
    for index in 0..<side {
      var (row, column) = (LineScanner(), LineScanner())
      for other in 0..<side {
        let isDark = self[index, other]
        if isDark { dark += 1 }
        row.take(isDark)
        column.take(self[other, index])
        // Squares of four modules of the same colour.
        guard index > 0, other > 0 else { continue }
        if self[index - 1, other] == isDark, self[index, other - 1] == isDark,
          self[index - 1, other - 1] == isDark
        {
          sum += 3
        }
      }
      row.end()
      column.end()
      sum += row.penalty + column.penalty
    }
    // Each step of five percent away from one half.
    let all = side * side
    return sum + 10 * (abs(20 * dark - 10 * all) / all)
  }

  /// A scanner of a row or a column for penalties, module by module.
  private struct LineScanner {
    private(set) var penalty = 0
    private var last = false
    private var length = 0
    /// The last eleven modules, with 1 for dark; the quiet zone before the line is light.
    private var window = 0

    mutating func take(_ isDark: Bool) {
      // Five or more modules of the same colour in a row.
      length = isDark == last && length > 0 ? length + 1 : 1
      last = isDark
      if length == 5 { penalty += 3 } else if length > 5 { penalty += 1 }
      look(isDark)
    }

    /// Takes the quiet zone behind the line, which counts only for patterns like a finder.
    mutating func end() { for _ in 0..<4 { look(false) } }

    /// Looks for a pattern like a finder, with four light modules on one side.
    private mutating func look(_ isDark: Bool) {
      window = (window << 1 | (isDark ? 1 : 0)) & 0b111_1111_1111
      if window == 0b101_1101_0000 || window == 0b000_0101_1101 { penalty += 40 }
    }
  }
}
