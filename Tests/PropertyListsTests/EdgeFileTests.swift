import FoundationEssentials
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Files at each limit of the reader: the last valid file and the first invalid file.
///
/// Each invalid file is refused for the reason of its own guard, and not of the next guard.
@Suite(.blocking) struct EdgeFileTests {
  func decode(_ file: RawFile) throws -> PropertyListValue {
    try BinaryPropertyList.decode(file.bytes)
  }

  /// A file of a single object.
  func decode(_ object: [UInt8]) throws -> PropertyListValue {
    try decode(RawFile([object]))
  }

  // MARK: Integers

  @Test func anIntegerHasSixtyFourBits() throws {
    #expect(try decode(RawFile.integer(0, .max)) == .unsigned(.max))
    #expect(try decode(RawFile.integer(0, 1 << 63)) == .unsigned(1 << 63))
    #expect(try decode(RawFile.integer(0, 1 << 63 - 1)) == .integer(.max))
    #expect(try decode(RawFile.integer(.max, 1 << 63)) == .integer(.min))
    #expect(try decode(RawFile.integer(.max, .max)) == .integer(-1))
    let tooLarge: [(high: UInt64, low: UInt64)] = [
      (1, 0), (.max, 1 << 63 - 1), (.max, 0), (.max - 1, .max), (1 << 63, 0),
    ]
    for (high, low) in tooLarge {
      refuses(.unsupported, "an integer of more than 64 bits") {
        _ = try decode(RawFile.integer(high, low))
      }
    }
  }

  @Test func aRealIsAnIntegerOnlyIfItIsWhole() throws {
    func read<T: FixedWidthInteger & Decodable>(_ real: Double, as type: T.Type) throws -> T {
      let number = try BinaryDecoder().decode(type, from: BinaryEncoder().encode(real))
      // Also as the value of a key.
      let keyed = try BinaryDecoder().decode(
        [String: T].self, from: BinaryEncoder().encode(["k": real]))
      #expect(keyed == ["k": number])
      return number
    }
    #expect(try read(1, as: Int.self) == 1)
    #expect(try read(-0.0, as: Int.self) == 0)
    #expect(try read(-0x1p63, as: Int.self) == .min)
    #expect(try read(0x1p63, as: UInt64.self) == 1 << 63)
    #expect(try read(255, as: UInt8.self) == 255)
    for real in [1.5, -0.5, 0x1p63, 1e300, .infinity, .nan, .leastNonzeroMagnitude] {
      refuses(.invalidValue, "a number not representable as Int") {
        _ = try read(real, as: Int.self)
      }
    }
    refuses(.invalidValue, "a number not representable as UInt8") {
      _ = try read(256, as: UInt8.self)
    }
    refuses(.invalidValue, "a number not representable as UInt64") {
      _ = try read(0x1p64, as: UInt64.self)
    }
    refuses(.invalidValue, "a number not representable as UInt64") {
      _ = try read(-1, as: UInt64.self)
    }
  }

  @Test func anIntegerFitsItsType() throws {
    func read<T: Decodable>(_ value: PropertyListValue, as type: T.Type) throws -> T {
      try BinaryDecoder().decode(type, from: BinaryPropertyList.encode(value))
    }
    #expect(try read(-128, as: Int8.self) == -128)
    #expect(try read(.unsigned(.max), as: UInt64.self) == .max)
    refuses(.invalidValue, "a number not representable as Int8") {
      _ = try read(-129, as: Int8.self)
    }
    refuses(.invalidValue, "a number not representable as UInt") { _ = try read(-1, as: UInt.self) }
    refuses(.invalidValue, "a number not representable as Int64") {
      _ = try read(.unsigned(1 << 63), as: Int64.self)
    }
  }

  @Test func aNumberThatAFloatCannotHoldIsRefused() throws {
    func read(_ real: Double) throws -> Float {
      try BinaryDecoder().decode([Float].self, from: BinaryEncoder().encode([real]))[0]
    }
    // Half a step above the greatest value is rounded to infinity.
    let edge = Double(Float.greatestFiniteMagnitude) + Double(Float.greatestFiniteMagnitude.ulp) / 2
    #expect(try read(edge.nextDown) == .greatestFiniteMagnitude)
    #expect(try read(-edge.nextDown) == -.greatestFiniteMagnitude)
    #expect(try read(.infinity) == .infinity)
    #expect(try read(-.infinity) == -.infinity)
    #expect(try read(.nan).isNaN)
    for real in [edge, -edge, 1e300] {
      refuses(.invalidValue, "a number not representable as Float") { _ = try read(real) }
    }
    let integer = try BinaryEncoder().encode([1 << 53 + 1])
    refuses(.invalidValue, "a number not representable as Float") {
      _ = try BinaryDecoder().decode([Float].self, from: integer)
    }
    let text = try BinaryEncoder().encode(["1"])
    refuses(.typeMismatch, "a string where Float is expected") {
      _ = try BinaryDecoder().decode([Float].self, from: text)
    }
  }

  /// 2^53 + 1 is the first integer that a `Double` cannot hold.
  @Test func anIntegerIsARealOnlyIfThatHoldsIt() throws {
    func read(_ value: PropertyListValue) throws -> Double {
      try BinaryDecoder().decode(Double.self, from: BinaryPropertyList.encode(value))
    }
    #expect(try read(.integer(1 << 53)) == 0x1p53)
    #expect(try read(.unsigned(1 << 63)) == 0x1p63)
    refuses(.invalidValue, "a number not representable as Double") {
      _ = try read(.integer(1 << 53 + 1))
    }
    refuses(.invalidValue, "a number not representable as Double") { _ = try read(.unsigned(.max)) }
  }

  // MARK: Kinds

  @Test func anObjectIsOfAKnownKindAndSize() {
    refuses(.unsupported, "the list contains a null") { _ = try decode([0x00]) }
    refuses(.unsupported, "the list contains a UID of a keyed archive") {
      _ = try decode([0x80, 1])
    }
    for set: UInt8 in [0xB0, 0xC0] {
      refuses(.unsupported, "the list contains a set") { _ = try decode([set]) }
    }
    let unknown: [[UInt8]] = [
      [0x01], [0x07], [0x0A], [0x0F], [0x15] + zeros(32), [0x20, 0], [0x21, 0, 0],
      [0x24] + zeros(16), [0x30, 0], [0x32] + zeros(4), [0x34] + zeros(16), [0x70], [0x90],
      [0xE0], [0xF0],
    ]
    for object in unknown {
      refuses(.malformed, "an object of unknown kind", "\(object)") { _ = try decode(object) }
    }
  }

  @Test func theSmallestSizesAreRead() throws {
    #expect(try decode([0x08]) == false)
    #expect(try decode([0x09]) == true)
    #expect(try decode([0x22] + bigEndian(Float(1.5).bitPattern)) == 1.5)
    #expect(try decode([0x40]) == .data(Data()))
    #expect(try decode([0x5F, 0x10, 1, 0x61]) == "a")
  }

  // MARK: Where an object ends

  /// Each object ends just before the offset table; then its last byte is removed.
  @Test func anObjectEndsBeforeTheOffsetTable() throws {
    let whole: [[UInt8]] = [
      [0x10, 1], [0x11, 0, 1], [0x12, 0, 0, 0, 1], [0x13] + zeros(8), [0x14] + zeros(16),
      [0x22] + zeros(4), [0x23] + zeros(8), [0x33] + zeros(8), [0x41, 1], [0x52, 0x61, 0x61],
      [0x61, 0, 0x61], [0x4F, 0x10, 2, 1, 1], [0x5F, 0x11, 0, 2, 0x61, 0x61],
      [0x6F, 0x10, 1, 0, 0x61], [0x4F, 0x13] + zeros(7) + [1, 1],
    ]
    for object in whole {
      #expect(throws: Never.self, "\(object)") { try decode(object) }
      refuses(.malformed, "an object extends into the offset table", "\(object)") {
        _ = try decode(Array(object.dropLast()))
      }
    }
  }

  @Test func aContainerEndsBeforeTheOffsetTable() throws {
    let text: [UInt8] = [0x51, 0x61]
    for (size, container) in [(1, [0xA1, 0]), (2, [0xA1, 0, 0]), (1, [0xD1, 0, 0])]
      as [(Int, [UInt8])]
    {
      let good = RawFile([text, container], referenceSize: size, top: 1)
      #expect(throws: Never.self, "\(container)") { try decode(good) }
      let bad = RawFile([text, Array(container.dropLast())], referenceSize: size, top: 1)
      refuses(.malformed, "an object extends into the offset table", "\(container)") {
        _ = try decode(bad)
      }
    }
    // The count alone exceeds the file.
    refuses(.malformed, "an object extends into the offset table") {
      _ = try decode([0xAF, 0x13] + zeros(4) + [0x40, 0, 0, 0])
    }
  }

  @Test func aCountEndsBeforeTheOffsetTable() {
    let counts: [[UInt8]] = [
      // No count, one byte too few, another kind, or too many bytes.
      [0x4F], [0x4F, 0x10], [0x4F, 0x11, 0], [0x4F, 0x12, 0, 0, 0], [0x4F, 0x13] + zeros(7),
      [0x4F, 0x22] + zeros(4), [0x4F, 0x00], [0x4F, 0x14] + zeros(16), [0x5F, 0x1F] + zeros(40),
    ]
    for object in counts {
      refuses(.malformed, "an object without its count", "\(object)") { _ = try decode(object) }
    }
  }

  // MARK: Offsets, the table and the trailer

  @Test func anOffsetLeadsToTheObjects() throws {
    let two: [[UInt8]] = [[0xA1, 1], [0x08]]
    var file = RawFile(two)
    #expect(try decode(file) == [false])
    // The first and the last byte of the objects.
    #expect(file.offsets == [8, 10])
    for wrong in [0, 7, 11, 12, 255] {
      file.offsets = [8, wrong]
      refuses(.malformed, "an offset outside the objects", "\(wrong)") { _ = try decode(file) }
    }
  }

  @Test func objectsDoNotOverlap() throws {
    // An array of two texts: the second begins at the end of the first, then one byte earlier.
    var file = RawFile([[0xA2, 1, 2], [0x52, 0x61, 0x51], [0x51, 0x62]])
    #expect(try decode(file) == ["aQ", "b"])
    file.offsets[2] -= 1
    refuses(.malformed, "two objects overlap") { _ = try decode(file) }
    // Also in the opposite order.
    file.offsets.swapAt(1, 2)
    refuses(.malformed, "two objects overlap") { _ = try decode(file) }
  }

  @Test func theTrailerFits() throws {
    let good = RawFile([[0x08]])
    #expect(good.bytes.count == 42)
    #expect(try decode(good) == false)
    func refuse(_ reason: String, _ change: (inout RawFile) -> Void) {
      var file = good
      change(&file)
      refuses(.malformed, reason) { _ = try decode(file) }
    }
    refuse("the file ends too early") { $0.objects = [[]] }
    for size in [0, 9, 255] {
      refuse("offsets or references of an invalid size") { $0.saysOffsetSize = size }
      refuse("offsets or references of an invalid size") { $0.saysReferenceSize = size }
    }
    refuse("the top object does not exist") { $0.top = 1 }
    refuse("the top object does not exist") { $0.saysCount = 0 }
    let table = "the offset table does not end where the trailer begins"
    refuse(table) { $0.saysCount = 2 }
    refuse(table) { $0.saysOffsetSize = 2 }
    for place in [0, 7, 8, 10, 42, Int.max] { refuse(table) { $0.saysTable = place } }
  }

  // MARK: Texts and keys

  @Test func aTextHasWholeCharacters() throws {
    let pair: [UInt8] = [0xD8, 0x3C, 0xDF, 0xAC]
    #expect(try decode([0x62] + pair) == "🎬")
    let halves: [[UInt8]] = [
      [0x61, 0xD8, 0x3C], [0x61, 0xDF, 0xAC], [0x62, 0, 0x61, 0xD8, 0x3C],
      [0x62, 0xDF, 0xAC, 0, 0x61],
      [0x62, 0xDF, 0xAC, 0xD8, 0x3C], [0x63] + pair + [0xDB, 0xFF], [0x62, 0xD8, 0x3C, 0, 0x61],
    ]
    for object in halves {
      refuses(.malformed, "a string with an unpaired surrogate", "\(object)") {
        _ = try decode(object)
      }
    }
    #expect(try decode([0x51, 0x7F]) == "\u{7F}")
    refuses(.malformed, "a non-ASCII character in an ASCII string") {
      _ = try decode([0x51, 0x80])
    }
  }

  @Test func aKeyIsATextAndUnique() throws {
    let ascii: [UInt8] = [0x51, 0x61]
    let wide: [UInt8] = [0x61, 0, 0x61]
    let other: [UInt8] = [0x61, 0, 0x62]
    let truth: [UInt8] = [0x08]
    func file(_ first: [UInt8], _ second: [UInt8]) -> RawFile {
      RawFile([[0xD2, 1, 2, 3, 3], first, second, truth])
    }
    #expect(try decode(file(ascii, other)) == ["a": false, "b": false])
    for (first, second) in [(ascii, wide), (wide, ascii), (ascii, ascii), (wide, wide)] {
      refuses(.duplicateKey, "the key 'a' occurs twice") { _ = try decode(file(first, second)) }
    }
    refuses(.unsupported, "a key that is an integer") { _ = try decode(file(ascii, [0x10, 1])) }
  }

  // MARK: Limits

  @Test func nestingHasALimit() throws {
    let limits = PropertyListLimits.default
    for depth in [limits.depth - 1, limits.depth] {
      let value = Samples.deep(depth)
      #expect(try BinaryPropertyList.decode(RawFile.nested(depth).bytes) == value)
      #expect(try JSONPropertyList.decode(Array(json(depth).utf8)) == value)
      #expect(try XMLPropertyList.decode(Array(xml(depth).utf8)) == value)
    }
    let reason = "nested more than 128 deep (limit: depth)"
    refuses(.limit(.depth), reason) {
      _ = try BinaryPropertyList.decode(RawFile.nested(limits.depth + 1).bytes)
    }
    refuses(.limit(.depth), reason) {
      _ = try JSONPropertyList.decode(Array(json(limits.depth + 1).utf8))
    }
    refuses(.limit(.depth), reason) {
      _ = try XMLPropertyList.decode(Array(xml(limits.depth + 1).utf8))
    }
  }

  private func json(_ depth: Int) -> String {
    String(repeating: "[", count: depth) + "\"bottom\"" + String(repeating: "]", count: depth)
  }

  private func xml(_ depth: Int) -> String {
    "<plist>" + String(repeating: "<array>", count: depth) + "<string>bottom</string>"
      + String(repeating: "</array>", count: depth) + "</plist>"
  }

  /// A file with an array whose references all lead to the same text.
  private func repeating(_ count: Int) -> RawFile {
    RawFile([
      [0xAF, 0x11] + bigEndian(UInt16(count)) + [UInt8](repeating: 1, count: count), [0x51, 0x61],
    ])
  }

  @Test func whatAFileReachesHasALimit() throws {
    let file = repeating(1000)
    var limits = PropertyListLimits()
    limits.reached = 1001
    _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    limits.reached = 1000
    let reason = "too many objects, with shared objects counted each time (limit: reached)"
    refuses(.limit(.reached), reason) {
      _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    }
    // The limit per byte: this file has slightly more bytes than reached objects.
    limits = PropertyListLimits()
    limits.reachedPerByte = 1
    _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    limits.reachedPerByte = 0
    refuses(.limit(.reached), reason) {
      _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    }
    // The array with its count and references, and the text's two bytes for each reference.
    limits = PropertyListLimits()
    limits.expandedBytes = 4 + 1000 + 2 * 1000
    _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    limits.expandedBytes -= 1
    refuses(
      .limit(.expandedBytes),
      "more than 3003 bytes, with shared objects counted each time (limit: expandedBytes)"
    ) { _ = try BinaryPropertyList.decode(file.bytes, limits: limits) }
  }

  @Test func aFileHasALimit() throws {
    let bytes = repeating(10).bytes
    var limits = PropertyListLimits()
    limits.bytes = bytes.count
    limits.objects = 2
    _ = try BinaryPropertyList.decode(bytes, limits: limits)
    limits.objects = 1
    refuses(.limit(.objects), "more than 1 objects (limit: objects)") {
      _ = try BinaryPropertyList.decode(bytes, limits: limits)
    }
    limits.bytes = bytes.count - 1
    refuses(.limit(.bytes), "more than \(bytes.count - 1) bytes (limit: bytes)") {
      _ = try BinaryPropertyList.decode(bytes, limits: limits)
    }
  }

  // MARK: What is written

  /// 256 objects fit a reference of one byte, 257 do not.
  @Test func referencesGrowWithTheObjects() throws {
    for count in [254, 255, 256, 257] {
      let value = PropertyListValue.array((0..<count).map { .integer(Int64($0)) })
      let bytes = try BinaryPropertyList.encode(value)
      #expect(try BinaryPropertyList.decode(bytes) == value)
      let size = bytes[bytes.count - 32 + 7]
      // The array is one more object, and numbers start at 0.
      #expect(size == (count + 1 <= 256 ? 1 : 2), "\(count)")
    }
  }

  @Test func textsAreEqualByTheirBytes() {
    #expect(PropertyListValue.string("é") != .string("e\u{301}"))
    #expect(PropertyListValue.string("é") == .string("\u{E9}"))
    #expect(PropertyListValue.array(["é"]) != .array(["e\u{301}"]))
  }
}

private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

private func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { Array($0) }
}

/// A binary property list in which each part can be wrong separately.
///
/// The file has no checksum, like files of other programs.
struct RawFile {
  var objects: [[UInt8]]
  var offsets: [Int]
  var offsetSize = 1
  var top: Int
  private let referenceSize: Int
  /// The trailer's values, if they differ from the real ones.
  var saysCount: Int?
  var saysTable: Int?
  var saysOffsetSize: Int?
  var saysReferenceSize: Int?

  init(_ objects: [[UInt8]], referenceSize: Int = 1, top: Int = 0) {
    self.objects = objects
    self.referenceSize = referenceSize
    self.top = top
    offsets = []
    var place = 8
    for object in objects {
      offsets.append(place)
      place += object.count
    }
    if place > 0xFF { offsetSize = 2 }
  }

  /// An integer of sixteen bytes.
  static func integer(_ high: UInt64, _ low: UInt64) -> RawFile {
    RawFile([[0x14] + bigEndian(high) + bigEndian(low)])
  }

  /// Arrays in arrays, and a text in the innermost.
  static func nested(_ depth: Int) -> RawFile {
    RawFile((1...depth).map { [0xA1, UInt8($0)] } + [[0x56] + Array("bottom".utf8)])
  }

  var bytes: [UInt8] {
    var bytes = Array("bplist00".utf8) + objects.joined()
    let table = bytes.count
    for offset in offsets { bytes += bigEndian(UInt64(offset)).suffix(offsetSize) }
    bytes += zeros(6)
    bytes += [
      UInt8(saysOffsetSize ?? offsetSize), UInt8(saysReferenceSize ?? referenceSize),
    ]
    for number in [saysCount ?? offsets.count, top, saysTable ?? table] {
      bytes += bigEndian(UInt64(number))
    }
    return bytes
  }
}
