import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeStress

/// P3 and P4: no order of steps and no death loses, doubles or reorders anything; and where a
/// mechanism is missing, that is found, and found again.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct ExplorationTests {
  private static let isLong = TestRun.isLong
  private var states: Int { Self.isLong ? 300_000 : 3000 }

  @Test(arguments: Exploring.allCases)
  func everyInterleavingKeepsThePromises(_ world: Exploring) {
    let seed = TestRun.seed
    let walked = world.walk(states: states, wandering: Self.isLong ? 5000 : 20, seed: seed, nil)
    #expect(walked.violation == nil, "seed \(seed): \(walked.path.map(\.text))")
    #expect(walked.states > 2000 || walked.isComplete, "too little to mean anything")
    #expect(walked.states > 500, "too little to mean anything")
  }

  /// A model that is small enough is seen completely.
  @Test(arguments: isLong ? [Exploring.lockTwo, .mail, .mailHeard] : [Exploring.lockTwo])
  func aSmallModelIsSeenInEveryOrderThereIs(_ world: Exploring) {
    let walked = world.walk(states: 1_000_000, wandering: 0, seed: 0, nil)
    #expect(walked.isComplete && walked.violation == nil)
    #expect(walked.states > 10_000)
  }

  @Test(arguments: [
    ("no-fence", Exploring.lockTwo), ("no-removal", .lockTwo), ("trust-listing", .mailHeard),
    ("no-end-of-lull", .mailHeard), ("trust-claim", .queueKeys), ("claim-any-key", .queueKeys),
    ("return-keys-to-inbox", .queueKeys),
  ])
  func aMechanismThatIsTakenOutIsMissed(_ name: String, _ world: Exploring) throws {
    let mutant = try #require(Plan.mutant(name))
    let walked = world.walk(states: 60_000, wandering: 0, seed: 0, mutant)
    let violation = try #require(walked.violation)
    var steps = 0
    #expect(world.replay(walked.path, mutant) { _ in steps += 1 } == violation)
    #expect(steps == walked.path.count)
    // With the mechanism the same way leads nowhere bad.
    #expect(world.replay(walked.path, nil) { _ in } == nil)
  }

  /// Nobody would claim the message any more.
  @Test func aReturnedMessageThatIsForgottenIsFound() throws {
    let mutant = try #require(Plan.mutant("forget-returned"))
    let walked = Exploring.queueTwo.walk(states: 60_000, wandering: 0, seed: 0, mutant)
    #expect(walked.violation == "nobody can go on")
    #expect(walked.path.count > 10)
  }

  @Test func everyMutantThatCanBeExploredIsKnown() {
    for name in Exploring.mutants { #expect(Plan.mutant(name) != nil, "\(name)") }
  }

  /// The printed line breaks the same promise again.
  @Test func theLineThatIsPrintedLeadsThereAgain() throws {
    let arguments = ["explore", "--world", "lock-two", "--mutant", "no-fence"]
    let program = Programs.built("wormhole-stress")
    let result = try TestSupport.run(program, arguments)
    #expect(result.status == .exited(1), "\(result.output)")
    let line = try #require(
      result.errors.split(separator: "\n").first { $0.contains("again: ") })
    let words = line.split(separator: " ").map(String.init)
    let begin = try #require(words.firstIndex(of: "explore"))
    let again = try TestSupport.run(program, Array(words[begin...]))
    #expect(again.status == .exited(1))
    let violation = "a change overwrote a value without reading it"
    #expect(result.output.contains(violation))
    #expect(again.output.hasSuffix(violation + "\n"))
  }

  @Test func waysAreWrittenAndRead() {
    for decisions in [[], [0], [1, 2, 3], Array(repeating: 15, count: 12)] as [[UInt8]] {
      let way = Way(decisions: decisions)
      #expect(way.decisions == decisions)
      #expect(Way.path(way.text) == [way])
    }
    #expect(Way.path("0.g") == nil)
    #expect(Way.path("01.-.2")?.count == 3)
  }

  @Test func allWaysOfAStepAreGone() {
    var choices = Choices()
    var seen: [[Int]] = []
    repeat {
      let first = choices.pick(2)
      seen.append(first == 0 ? [first] : [first, choices.pick(3), choices.pick() ? 1 : 0])
    } while choices.next()
    #expect(seen == [[0], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [1, 2, 0], [1, 2, 1]])
  }
}
