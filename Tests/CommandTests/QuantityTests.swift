import TestTraits
import Testing

@testable import WormholeCommand

/// Times and sizes in the lines of `status` and of other lists.
@Suite(.blocking) struct QuantityTests {
  @Test func aTimeHasThreeDecimalsForPrograms() {
    #expect(Duration.milliseconds(1005).inSeconds == "1.005")
    #expect(Duration.milliseconds(50).inSeconds == "0.050")
    #expect(Duration.seconds(90_061).inSeconds == "90061.000")
  }

  @Test func aTimeIsInTheLargestUnitThatFits() {
    for (seconds, text) in [
      (0, "0.0 s"), (9, "9.0 s"), (10, "10 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"),
      (7200, "2 h"), (172_799, "47 h"), (172_800, "2 d"),
    ] { #expect(Duration.seconds(seconds).inUnits == text) }
    #expect(Duration.milliseconds(9999).inUnits == "9.9 s")
  }

  @Test func aSizeIsInTheLargestUnitThatFits() {
    for (bytes, text) in [
      (0, "0 B"), (10_239, "10239 B"), (10_240, "10 KiB"), ((10 << 20) - 1, "10239 KiB"),
      (10 << 20, "10 MiB"), ((10 << 30) - 1, "10239 MiB"), (10 << 30, "10 GiB"),
    ] { #expect(bytes.inUnits == text) }
  }
}
