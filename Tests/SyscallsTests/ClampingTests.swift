import TestTraits
import Testing
import WormholeSyscalls

/// P9: arithmetic with numbers that any program may have written.
@Suite(.blocking) struct ClampingTests {
  private static let numbers = [Int64.min, .min + 1, -2, -1, 0, 1, 2, .max - 1, .max]

  @Test func sumsAndDifferencesStayInTheRange() {
    for left in Self.numbers {
      for right in Self.numbers {
        let sum = Int128(left) + Int128(right)
        #expect(left.addingClamped(right) == Int64(clamping: sum))
        let difference = Int128(left) - Int128(right)
        #expect(left.subtractingClamped(right) == Int64(clamping: difference))
      }
    }
    #expect(UInt64(1).subtractingClamped(2) == 0 && UInt64.max.addingClamped(1) == .max)
  }

  @Test(
    arguments: [
      (1.9, 1), (-1.9, -1), (0, 0), (1e308, .max), (-1e308, .min), (.nan, 0), (.infinity, .max),
      (-.infinity, .min), (0x1p63, .max), (-0x1p63, .min), (0x1p62, 1 << 62),
    ] as [(Double, Int64)])
  func aNumberWithAFractionIsClamped(_ number: Double, _ whole: Int64) {
    #expect(Int64(clamping: number) == whole)
  }

  @Test func noNumberOfSecondsIsTooGreat() {
    #expect(Duration.seconds(clamping: 1.5) == .milliseconds(1500))
    #expect(Duration.seconds(clamping: -1.5) == .milliseconds(-1500))
    #expect(Duration.seconds(clamping: .nan) == .zero)
    for seconds in [1e308, .infinity, 0x1p63] {
      let longest = Duration.seconds(clamping: seconds)
      #expect(longest == .seconds(1 << 62 as Int64) && longest.inNanoseconds == .max)
      #expect(Duration.seconds(clamping: -seconds) == .zero - longest)
    }
  }
}
