/// The modules of a QR code: the patterns by which scanners find the code, and the data between
/// them.
struct QRMatrix: Hashable, Sendable {
  let side: Int
  private let version: Int
  /// The modules row by row; true is dark.
  private var dark: [Bool]
  /// The modules that contain neither data nor mask.
  private var isFixed: [Bool]

  subscript(row: Int, column: Int) -> Bool { dark[row * side + column] }

  /// Makes a matrix without a mask, and without the format word that names the mask.
  init(_ version: QRVersion, _ codewords: [UInt8]) {
    side = version.side
    self.version = version.number
    dark = Array(repeating: false, count: side * side)
    isFixed = dark
    drawTiming()
    for (row, column) in [(3, 3), (3, side - 4), (side - 4, 3)] { drawFinder(row, column) }
    drawAlignment(version.alignment)
    // The area of the format word is reserved until a mask is chosen.
    drawFormat(0)
    drawVersion()
    draw(codewords)
  }

  private mutating func fix(_ row: Int, _ column: Int, _ isDark: Bool) {
    dark[row * side + column] = isDark
    isFixed[row * side + column] = true
  }

  // MARK: Patterns

  private mutating func drawTiming() {
    for index in 0..<side {
      fix(6, index, index.isMultiple(of: 2))
      fix(index, 6, index.isMultiple(of: 2))
    }
  }

  /// Draws a finder with its surrounding light line, as far as the line is inside the matrix.
  private mutating func drawFinder(_ row: Int, _ column: Int) {
    for down in -4...4 {
      for right in -4...4 {
        let (place, other) = (row + down, column + right)
        guard (0..<side).contains(place), (0..<side).contains(other) else { continue }
        let distance = max(abs(down), abs(right))
        fix(place, other, distance != 2 && distance != 4)
      }
    }
  }

  private mutating func drawAlignment(_ middles: [Int]) {
    guard let first = middles.first, let last = middles.last else { return }
    for row in middles {
      for column in middles {
        // Three corners have a finder already.
        if (row, column) == (first, first) || (row, column) == (first, last)
          || (row, column) == (last, first)
        {
          continue
        }
        for down in -2...2 {
          for right in -2...2 { fix(row + down, column + right, max(abs(down), abs(right)) != 1) }
        }
      }
    }
  }

  /// Draws level and mask, with ten bits of error correction, in two places.
  private mutating func drawFormat(_ mask: Int) {
    let levelQ = 0b11
    let word = Self.corrected(levelQ << 3 | mask, bits: 10, by: 0x537) ^ 0x5412
    func bit(_ place: Int) -> Bool { word >> place & 1 == 1 }
    for place in 0..<15 {
      // The first copy: around the first finder, beyond the timing patterns.
      switch place {
      case 0...5: fix(place, 8, bit(place))
      case 6: fix(7, 8, bit(place))
      case 7: fix(8, 8, bit(place))
      case 8: fix(8, 7, bit(place))
      default: fix(8, 14 - place, bit(place))
      }
      // The second copy: beside the two other finders.
      if place < 8 { fix(8, side - 1 - place, bit(place)) }
      if place > 7 { fix(side - 15 + place, 8, bit(place)) }
    }
    fix(side - 8, 8, true)
  }

  /// Draws the version number, from version 7 on, with twelve bits of error correction, in two
  /// places.
  private mutating func drawVersion() {
    guard version >= 7 else { return }
    let word = Self.corrected(version, bits: 12, by: 0x1F25)
    for place in 0..<18 {
      let isDark = word >> place & 1 == 1
      fix(place / 3, side - 11 + place % 3, isDark)
      fix(side - 11 + place % 3, place / 3, isDark)
    }
  }

  /// Returns a value followed by the remainder of its division by the generator.
  private static func corrected(_ value: Int, bits: Int, by generator: Int) -> Int {
    var rest = value << bits
    var place = rest.bitWidth - rest.leadingZeroBitCount - 1
    while place >= bits {
      if rest >> place & 1 == 1 { rest ^= generator << (place - bits) }
      place -= 1
    }
    return value << bits | rest
  }

  // MARK: Data

  /// Draws the data in columns of two modules from the right, alternately up and down.
  private mutating func draw(_ codewords: [UInt8]) {
    var next = 0
    var right = side - 1
    var isUpward = true
    while right > 0 {
      // The column of the timing pattern is skipped.
      if right == 6 { right -= 1 }
      for step in 0..<side {
        let row = isUpward ? side - 1 - step : step
        for column in [right, right - 1] where !isFixed[row * side + column] {
          // Modules after the end of the data stay light.
          guard next < 8 * codewords.count else { continue }
          dark[row * side + column] = codewords[next / 8] >> (7 - next % 8) & 1 == 1
          next += 1
        }
      }
      right -= 2
      isUpward.toggle()
    }
  }

  /// Returns the matrix with a mask over the data, and with the format word that names the mask.
  func masked(by mask: Int) -> QRMatrix {
    var masked = self
    for row in 0..<side {
      for column in 0..<side
      where !isFixed[row * side + column] && Self.turns(row, column, by: mask) {
        masked.dark[row * side + column].toggle()
      }
    }
    masked.drawFormat(mask)
    return masked
  }

  private static func turns(_ row: Int, _ column: Int, by mask: Int) -> Bool {
    switch mask {
    case 0: (row + column) % 2 == 0
    case 1: row % 2 == 0
    case 2: column % 3 == 0
    case 3: (row + column) % 3 == 0
    case 4: (row / 2 + column / 3) % 2 == 0
    case 5: row * column % 2 + row * column % 3 == 0
    case 6: (row * column % 2 + row * column % 3) % 2 == 0
    default: ((row + column) % 2 + row * column % 3) % 2 == 0
    }
  }
}
