import FoundationEssentials
import WormholeCTesting
package import WormholePropertyLists

/// Makes hostile files, one for each seed and number, and holds the readers to their promises.
package struct Fuzzer {
  package var seed: UInt64
  package var limits: PropertyListLimits

  /// A promise that was broken.
  package struct Failure: Error, CustomStringConvertible {
    package var seed: UInt64
    package var index: Int
    package var reason: String
    package var bytes: [UInt8]

    package var description: String {
      """
      \(reason)
      replay: swift run PropertyListFuzzer --seed \(seed) --first \(index) --count 1
      base64: \(Data(bytes).base64EncodedString())
      """
    }
  }

  /// The results of a number of cases.
  package struct Tally: Sendable {
    package var cases = 0
    package var accepted = 0
    package var slowest = Duration.zero

    package init() {}
  }

  package init(seed: UInt64) {
    self.seed = seed
    limits = PropertyListLimits()
    limits.reached = 2_000
    limits.objects = 2_000
  }

  /// The bytes of a case.
  package func file(_ index: Int) -> [UInt8] {
    var random = Random(seed: seed, case: index)
    let value = random.chance(4) ? random.pick(Corpus.typed) : Corpus.value(&random)
    switch random.below(10) {
    case 0, 1:
      let json = try? JSONPropertyList.encode(value, pretty: random.chance(2))
      return TextMutation.mutate(json ?? "[]", tokens: TextMutation.json, &random)
    case 2, 3:
      let xml = try? XMLPropertyList.encode(value)
      return TextMutation.mutate(xml ?? "<plist></plist>", tokens: TextMutation.xml, &random)
    case 4:
      let shared = SharedReferences.file(levels: 1 + random.below(90), width: 1 + random.below(5))
      return random.chance(3) ? shared : BinaryMutation.mutate(shared, &random)
    default:
      return BinaryMutation.mutate((try? BinaryPropertyList.encode(value)) ?? [], &random)
    }
  }

  /// Runs cases; `before` is called with each case, so that a crash can be located.
  package func run(
    _ indices: Range<Int>, before: (Int) -> Void = { _ in }
  ) throws(Failure) -> Tally {
    var tally = Tally()
    let yardstick = Yardstick(limits: limits)
    for index in indices {
      before(index)
      let bytes = file(index)
      func fail(_ reason: String) -> Failure {
        Failure(seed: seed, index: index, reason: reason, bytes: bytes)
      }
      var reading = Reading.refused
      let took = Yardstick.time { reading = Reading(bytes, limits) }
      // A slow machine makes every file slow: such a case is held against the yardstick, in turn.
      let isSlow =
        took > .milliseconds(100)
        && (0..<30).allSatisfy { _ in yardstick.time { reading = Reading(bytes, limits) } > 8 }
      if isSlow { throw fail("took \(took)") }
      if let reason = reading.brokenPromise(limits) { throw fail(reason) }
      tally.cases += 1
      if case .accepted = reading { tally.accepted += 1 }
      tally.slowest = max(tally.slowest, took)
    }
    return tally
  }
}

/// A file that is always the same, to distinguish a slow case from a slow machine.
///
/// It is as large as the limits allow, and took 13 ms where no case may take more than 100. So what
/// slows a case down, be it the caches or a lock of the system's, slows the file down as well.
private struct Yardstick {
  private let bytes = SharedReferences.file(levels: 9, width: 2)
  let limits: PropertyListLimits

  /// How many times as long as the file the body takes.
  func time(_ body: () -> Void) -> Double {
    let one = Self.time { _ = Reading(bytes, limits) }
    return Self.time(body) / one
  }

  /// How much of the processor's time the body takes, which other processes may use in between.
  static func time(_ body: () -> Void) -> Duration {
    let begin = testing_time_of_thread()
    body()
    return .nanoseconds(testing_time_of_thread() - begin)
  }
}
