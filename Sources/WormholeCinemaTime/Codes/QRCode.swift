/// A QR code of a text: byte mode, error correction level Q, versions 1 to 13.
///
/// The code follows ISO/IEC 18004: the smallest version with room for the text, and the mask with
/// the lowest penalty among the eight. A text outside ASCII is marked as UTF-8.
public struct QRCode: Hashable, Sendable {
  /// The version, from 1 to 13.
  public let version: Int
  /// The number of the mask over the data, one of eight.
  public let mask: Int
  /// The number of modules of each side.
  public var side: Int { modules.side }
  private let modules: QRMatrix

  /// A text that is too long for version 13, the largest version supported here.
  public struct TooLong: Error, CustomStringConvertible {
    /// The number of bytes of the text.
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
    (mask, modules) = QRMatrix(version, codewords).masked()
    self.version = version.number
  }

  /// Whether the module in the given row and column is dark; a module outside the code is light.
  public subscript(row: Int, column: Int) -> Bool {
    let range = 0..<side
    return range.contains(row) && range.contains(column) && modules[row, column]
  }

  /// The code in lines of half blocks, with a quiet zone: for a terminal with light letters on a
  /// dark background, so light modules are the ones that are drawn.
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
