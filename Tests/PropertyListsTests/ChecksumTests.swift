import TestSupport
import TestTraits
import Testing

@testable import WormholePropertyLists

@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct ChecksumTests {
  @Test func matchesTheKnownValues() {
    let digits = Array("123456789".utf8)
    let known = Checksum.crc32(digits.span.bytes, RawSpan())
    #expect(known == 0xCBF4_3926)
    let long = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let whole = Checksum.crc32(long.span.bytes, RawSpan())
    for cut in [0, 1, 7, 8, 9, 500, 1000] {
      let parts = Checksum.crc32(
        long.span.bytes.extracting(first: cut), long.span.bytes.extracting(droppingFirst: cut))
      #expect(parts == whole)
    }
  }

  /// By the processor's instructions, by the table, and bit by bit.
  @Test func everyWayComesToTheSame() {
    var random = SeededRandom(seed: TestRun.seed)
    for length in Array(0...300) + [4096, 65_537] {
      let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      var sum = Checksum()
      sum.add(bytes.span.bytes)
      let byTable = ~Checksum.updateByTable(~0, with: bytes.span.bytes)
      #expect(byTable == sum.value, "\(length) bytes")
      #expect(bitByBit(bytes) == sum.value, "\(length) bytes")
    }
  }

  private func bitByBit(_ bytes: [UInt8]) -> UInt32 {
    var state = ~UInt32(0)
    for byte in bytes {
      state ^= UInt32(byte)
      for _ in 0..<8 { state = state & 1 == 0 ? state >> 1 : (state >> 1) ^ 0xEDB8_8320 }
    }
    return ~state
  }

  @Test(arguments: [0, 1, 500, 1000])
  func partsCanBeSummedUpApart(_ cut: Int) {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    var (whole, first, second) = (Checksum(), Checksum(), Checksum())
    whole.add(bytes.span.bytes)
    first.add(bytes.span.bytes.extracting(first: cut))
    second.add(bytes.span.bytes.extracting(droppingFirst: cut))
    first.append(second, count: 1000 - cut)
    #expect(first.value == whole.value)
  }

  @Test(arguments: [0, 1, 63, 64, 65, 4096, 100_003])
  func zerosNeedNotBeThere(_ count: Int) {
    let start = Array("a file with a hole".utf8)
    let zeros = [UInt8](repeating: 0, count: count)
    var (written, skipped) = (Checksum(), Checksum())
    written.add(start.span.bytes)
    skipped.add(start.span.bytes)
    written.add(zeros.span.bytes)
    skipped.addZeros(count)
    #expect(written.value == skipped.value)
    written.add(start.span.bytes)
    skipped.add(start.span.bytes)
    #expect(written.value == skipped.value)
  }

  /// P9: a file that takes up no space may claim to be as large as any file can be.
  @Test func moreZerosThanAnyDiskHas() {
    var (once, twice) = (Checksum(), Checksum())
    once.addZeros(.max)
    twice.addZeros(.max / 2)
    twice.addZeros(.max / 2 + 1)
    #expect(once.value == twice.value)
  }
}
