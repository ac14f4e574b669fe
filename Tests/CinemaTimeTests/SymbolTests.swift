import TestTraits
import Testing
import WormholePropertyLists

@testable import WormholeCinemaTime

/// QR codes compared with the standard's example and tables, and with other programs' symbols.
@Suite(.blocking) struct SymbolTests {
  /// ISO/IEC 18004, annex with the encoding of `01234567` as version 1-M.
  @Test func errorCorrectionMatchesTheStandardsExample() {
    let data: [UInt8] = [
      0x10, 0x20, 0x0C, 0x56, 0x61, 0x80, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC,
      0x11,
    ]
    #expect(
      ReedSolomon(10).remainder(data)
        == [0xA5, 0x24, 0xD4, 0xC1, 0xED, 0x36, 0xC7, 0x87, 0x2C, 0x55])
    // `HELLO WORLD` as version 1-Q, the example of textbooks.
    #expect(ReedSolomon(13).remainder(Self.helloWorld) == Self.correctionOfHelloWorld)
  }

  private static let helloWorld: [UInt8] = [
    32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236,
  ]
  private static let correctionOfHelloWorld: [UInt8] = [
    168, 72, 22, 82, 217, 54, 156, 0, 46, 15, 180, 122, 16,
  ]

  /// The standard's table of format words; here the words of level Q, by mask.
  @Test func formatBitsMatchTheStandardsTable() throws {
    let words = [
      "011010101011111", "011000001101000", "011111100110001", "011101000000110",
      "010010010110100", "010000110000011", "010111011011010", "010101111101101",
    ]
    let bare = QRMatrix(QRVersion.all[0], Self.helloWorld + Self.correctionOfHelloWorld)
    for (mask, word) in words.enumerated() {
      let code = bare.masked(by: mask)
      // From the most significant bit on: around the first finder, beside the second and third.
      let around: [(Int, Int)] =
        (0..<6).map { (8, $0) } + [(8, 7), (8, 8), (7, 8)] + (0..<6).reversed().map { ($0, 8) }
      let beside: [(Int, Int)] = (0..<7).map { (20 - $0, 8) } + (13..<21).map { (8, $0) }
      for places in [around, beside] {
        #expect(places.map { code[$0.0, $0.1] ? "1" : "0" }.joined() == word, "mask \(mask)")
      }
      #expect(code[13, 8], "the module that is always dark")
    }
  }

  /// The table of all version words, from 7 on.
  @Test func versionBitsMatchTheStandardsTable() throws {
    let words = [
      "000111110010010100", "001000010110111100", "001001101010011001", "001010010011010011",
      "001011101111110110", "001100011101100010", "001101100001000111",
    ]
    for (index, word) in words.enumerated() {
      let version = QRVersion.all[6 + index]
      let code = QRMatrix(version, version.interleaved(version.data(of: [], isASCII: true)))
      let places: [(Int, Int)] = (0..<18).reversed().map { ($0 / 3, version.side - 11 + $0 % 3) }
      #expect(places.map { code[$0.0, $0.1] ? "1" : "0" }.joined() == word)
      #expect(places.map { code[$0.1, $0.0] ? "1" : "0" }.joined() == word)
    }
  }

  /// Counted by a second program, rule by rule, in symbols of a third program.
  @Test func penaltiesMatchTheStandard() {
    let bare = QRMatrix(QRVersion.all[0], Self.helloWorld + Self.correctionOfHelloWorld)
    #expect(
      (0..<8).map { bare.masked(by: $0).penalty }
        == [1067, 1230, 1266, 1201, 1339, 1276, 1114, 1278])
  }

  /// The symbols of another program, each with the mask of the lowest penalty.
  ///
  /// If two masks have an equal penalty, the first mask is used.
  @Test(arguments: [
    (0, 1, 0, 165_012_565), (1, 1, 0, 2_074_082_214), (5, 1, 4, 211_271_547),
    (11, 1, 3, 2_542_595_865), (12, 2, 2, 1_760_830_373), (20, 2, 6, 1_691_629_322),
    (21, 3, 1, 865_949_799), (32, 3, 1, 2_064_146_812), (33, 4, 0, 1_866_630_990),
    (46, 4, 7, 1_509_010_495), (47, 5, 3, 3_940_493_192), (60, 5, 1, 2_344_107_431),
    (61, 6, 2, 2_099_440_113), (74, 6, 3, 63_283_772), (75, 7, 2, 3_021_539_154),
    (86, 7, 1, 455_310_238), (87, 8, 0, 1_884_622_847), (108, 8, 6, 1_704_889_072),
    (109, 9, 2, 3_908_125_260), (130, 9, 3, 2_487_358_074), (131, 10, 2, 3_334_191_192),
    (151, 10, 1, 681_130_792), (152, 11, 7, 276_094_835), (161, 11, 0, 1_462_983_016),
    (177, 11, 3, 1_845_715_101), (178, 12, 7, 397_334_528), (203, 12, 2, 2_050_304_050),
    (204, 13, 1, 462_654_975), (241, 13, 2, 1_472_893_045),
  ])
  func symbolsOfEveryLengthMatchAnotherProgram(
    _ length: Int, _ version: Int, _ mask: Int, _ checksum: Int
  ) throws {
    let characters = (0..<length).map { UInt8(33 + ($0 * $0 + 7 * $0 + length) % 90) }
    try expect(String(decoding: characters, as: UTF8.self), version, mask, checksum)
  }

  /// With the mark of UTF-8 before the bytes, also if the mark makes the next version necessary.
  @Test(arguments: [
    ("Die Büchse der Pandora @ 5:00 PM", 4, 0, 717_458_744), ("éééé", 1, 7, 3_448_301_487),
    ("ééééé", 1, 3, 1_685_380_717), ("éééééx", 2, 0, 3_540_327_058),
    ("大独裁者 @ 9:00 PM", 3, 7, 1_683_975_363),
    (String(repeating: "é", count: 30), 6, 2, 1_628_857_157),
    (String(repeating: "é", count: 65), 10, 0, 1_000_474_736),
    ("HELLO WORLD", 1, 2, 1_815_921_139), ("The General @ 5:00 PM", 3, 6, 2_293_478_359),
  ])
  func symbolsOfTextsMatchAnotherProgram(
    _ text: String, _ version: Int, _ mask: Int, _ checksum: Int
  ) throws {
    try expect(text, version, mask, checksum)
  }

  /// - Parameter checksum: the CRC-32 of the modules, row by row, as the digits 0 and 1.
  private func expect(_ text: String, _ version: Int, _ mask: Int, _ checksum: Int) throws {
    let code = try QRCode(text)
    #expect((code.version, code.mask) == (version, mask))
    var digits: [UInt8] = []
    for row in 0..<code.side {
      for column in 0..<code.side { digits.append(UInt8(ascii: code[row, column] ? "1" : "0")) }
    }
    var sum = Checksum()
    sum.add(digits.span.bytes)
    #expect(Int(sum.value) == checksum)
  }
}
