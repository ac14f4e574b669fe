import Testing

@testable import PropertyLists

@Suite struct ChecksumTests {
  @Test func matchesTheKnownValues() {
    let digits = Array("123456789".utf8)
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    digits.withUnsafeBytes { #expect(Checksum.crc32($0, nothing) == 0xCBF4_3926) }
    let long = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    long.withUnsafeBytes { all in
      let whole = Checksum.crc32(all, nothing)
      for cut in [0, 1, 7, 8, 9, 500, 1000] {
        let parts = Checksum.crc32(
          UnsafeRawBufferPointer(rebasing: all[..<cut]),
          UnsafeRawBufferPointer(rebasing: all[cut...]))
        #expect(parts == whole)
      }
    }
  }
}
