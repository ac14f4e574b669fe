import FoundationEssentials
import TestTraits
import Testing

@testable import WormholePropertyLists

/// The form of bytes that a person provides, the mark of a synced file, and the content of tags.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct FormAndMarkTests {
  private let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  @Test func theBeginningTellsTheForm() throws {
    for (text, form) in [
      ("bplist00", .binary), ("bplist01", .json), ("bplist0", .json), ("<plist>", .xml),
      (" \t\r\n<plist>", .xml), ("{}", .json), (" \t\r\n[]", .json), ("x", .json), ("", nil),
      (" \t\r\n", nil),
    ] as [(String, PropertyListForm?)] {
      #expect(PropertyListForm(of: Array(text.utf8)) == form, "\(text)")
    }
    for (text, form) in [
      ("<plist>", .xml), ("\n<plist>", .xml), ("{}", .json), ("", nil), (" ", nil),
    ] as [(String, PropertyListForm?)] {
      #expect(PropertyListForm(of: byteOrderMark + text.utf8) == form, "\(text)")
    }
    for text in ["<plist><true/></plist>", " true "] {
      #expect(try PropertyListValue(reading: Array(text.utf8)) == true)
      #expect(try PropertyListValue(reading: byteOrderMark + text.utf8) == true)
    }
    for bytes in [[], Array(" \n".utf8), byteOrderMark] as [[UInt8]] {
      refuses(.notPropertyList, "the input is empty") { _ = try PropertyListValue(reading: bytes) }
    }
  }

  /// The mark of a synced file is one byte, which the checksum does not cover.
  @Test func aSealedFileIsMarkedOnce() throws {
    let value: PropertyListValue = ["row": 7]
    let file = try BinaryPropertyList.encode(value)
    #expect(!BinaryPropertyList.isMarkedSynced(file))
    var marked = file
    BinaryPropertyList.markSynced(&marked)
    #expect(BinaryPropertyList.isMarkedSynced(marked))
    #expect(marked.count == file.count)
    let changed = file.indices.filter { file[$0] != marked[$0] }
    #expect(changed == [file.count - 31])
    #expect(BinaryPropertyList.seal(of: marked) == .checked)
    #expect(try BinaryPropertyList.decode(marked) == value)
    var again = marked
    BinaryPropertyList.markSynced(&again)
    #expect(again == marked)
  }

  /// A file without a checksum would be damaged by the mark.
  @Test func onlyASealedFileIsMarked() throws {
    let foreign = RawFile([[0x09]]).bytes
    #expect(BinaryPropertyList.seal(of: foreign) == .believed)
    for bytes in [foreign, [], Array("bplist00".utf8), [UInt8](repeating: 0, count: 32)] {
      var marked = bytes
      BinaryPropertyList.markSynced(&marked)
      #expect(marked == bytes)
      #expect(!BinaryPropertyList.isMarkedSynced(marked))
    }
  }

  @Test func anElementEndsWithItsOwnName() {
    func read(_ body: String) throws {
      _ = try XMLPropertyList.decode(Array("<plist>\(body)".utf8))
    }
    refuses(.malformed, "the end of another element") { try read("<string>a</integer></plist>") }
    refuses(.malformed, "the end of another element") { try read("<string>a</strings></plist>") }
    refuses(.malformed, "the end of another element") {
      try read("<dict><key>a</string><true/></dict></plist>")
    }
    refuses(.malformed, "an element inside string") { try read("<string><b/></string></plist>") }
    refuses(.malformed, "an element inside key") {
      try read("<dict><key><b/></key></dict></plist>")
    }
    refuses(.malformed, "the text ends too early") { try read("<string>a") }
    refuses(.malformed, "an unknown element") { try read("<uid>1</uid></plist>") }
  }

  /// Three digits at a time, and no more than reading back the same date needs.
  @Test(arguments: [
    (0, ""), (0.5, ".500"), (0.001, ".001"), (0.9999, ".999900"), (0.000_001, ".000001"),
    (1e-9, ".000000001"), (1e-12, ".000000000001"),
  ])
  func aDateHasAsManyDigitsAsItNeeds(_ seconds: Double, _ fraction: String) {
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    let text = "2001-01-01T00:00:00\(fraction)Z"
    #expect(DateText.format(date) == text)
    #expect(DateText.parse(text) == date)
    #expect(DateText.format(date, fraction: false) == "2001-01-01T00:00:00Z")
  }
}
