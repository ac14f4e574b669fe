/// A QR code of a text: byte mode, error correction level Q, versions 1 to 13.
///
/// Made as ISO/IEC 18004 says: the smallest version that holds the text, and of the eight masks the
/// one with the least penalty. A text that is not ASCII is marked as UTF-8.
public struct QRCode: Hashable, Sendable {
  /// From 1 to 13.
  public let version: Int
  /// Which of the eight masks lies over the data.
  public let mask: Int
  /// How many modules each side has.
  public var side: Int { modules.side }
  private let modules: QRMatrix

  /// A text that is too long for the largest version that is made here.
  public struct TooLong: Error, CustomStringConvertible {
    /// How many bytes the text has.
    public let bytes: Int

    /// One sentence, without a full stop.
    public var description: String {
      "cannot draw a QR code of \(bytes) bytes: version 13 at level Q holds 241 at most"
    }
  }

  /// Draws the code of a text.
  public init(_ text: String) throws(TooLong) {
    let bytes = Array(text.utf8)
    let isASCII = bytes.allSatisfy { $0 < 0x80 }
    guard let version = QRVersion.all.first(where: { $0.holds(bytes, isASCII: isASCII) }) else {
      throw TooLong(bytes: bytes.count)
    }
    let codewords = version.interleaved(version.data(of: bytes, isASCII: isASCII))
    let bare = QRMatrix(version, codewords)
    var best = (mask: 0, penalty: Int.max, modules: bare)
    for mask in 0..<8 {
      let masked = bare.masked(by: mask)
      let penalty = masked.penalty
      if penalty < best.penalty { best = (mask, penalty, masked) }
    }
    self.version = version.number
    mask = best.mask
    modules = best.modules
  }

  /// Whether the module in that row and column is dark; outside of the code it is light.
  public subscript(row: Int, column: Int) -> Bool {
    let range = 0..<side
    return range.contains(row) && range.contains(column) && modules[row, column]
  }

  /// The code in lines of half blocks, with a quiet zone: for a terminal with light letters on a
  /// dark ground, so that what is light here is drawn.
  public var lines: [String] {
    let zone = 2
    return stride(from: -zone, to: side + zone, by: 2).map { row in
      String(
        (-zone..<side + zone).map { column -> Character in
          switch (self[row, column], self[row + 1, column] || row + 1 >= side + zone) {
          case (false, false): "█"
          case (false, true): "▀"
          case (true, false): "▄"
          case (true, true): " "
          }
        })
    }
  }
}
