import Foundation
import PropertyListFuzzing
import TestSupport
import TestTraits
import Testing

@Suite(.blocking) struct FuzzTests {
  /// Ten thousand mutated files, always the same; a million new ones when WORMHOLE_LONG is set.
  @Test func mutatedFilesBreakNoPromise() throws {
    let isLong = ProcessInfo.processInfo.environment["WORMHOLE_LONG"] == "1"
    let seed = isLong ? UInt64.random(in: 1...999_999_999) : 20_260_929
    if isLong { print("seed \(seed)") }
    let tally = try Fuzzer(seed: seed).run(0..<(isLong ? 1_000_000 : 10_000))
    // Were nearly all refused, or hardly any, the mutations would not reach what they are to reach.
    #expect(tally.accepted > tally.cases / 50 && tally.accepted < tally.cases / 2)
  }

  @Test func aSeedRepeatsItsFiles() {
    let files = (0..<100).map { Fuzzer(seed: 5).file($0) }
    #expect(files == (0..<100).map { Fuzzer(seed: 5).file($0) })
    #expect(Set(files).count > 90)
  }
}
