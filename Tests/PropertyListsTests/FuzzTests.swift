import PropertyListFuzzing
import TestSupport
import TestTraits
import Testing

@Suite(.blocking, .notSanitized("pure, on one thread")) struct FuzzTests {
  /// Ten thousand mutated files, and a million when `WORMHOLE_LONG` is set.
  ///
  /// `WORMHOLE_SEED` replays a run.
  @Test func mutatedFilesBreakNoPromise() throws {
    let tally = try Fuzzer(seed: TestRun.seed).run(0..<(TestRun.isLong ? 1_000_000 : 10_000))
    // If nearly all cases were refused, or hardly any, the mutations would not reach their targets.
    #expect(tally.accepted > tally.cases / 50 && tally.accepted < tally.cases / 2)
  }

  @Test func aSeedRepeatsItsFiles() {
    let files = (0..<100).map { Fuzzer(seed: 5).file($0) }
    #expect(files == (0..<100).map { Fuzzer(seed: 5).file($0) })
    #expect(Set(files).count > 90)
  }
}
