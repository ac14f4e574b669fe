import TestTraits
import Testing

@testable import WormholeStress

/// The checks beside calls find their violations, and nothing where all is well.
@Suite(.blocking) struct LookTests {
  // MARK: What is held

  /// Samples that are a second apart.
  private func held(
    _ threads: [Int], own: [Int]? = nil, memory: Int = 9000, every interval: Int64 = 1_000_000_000
  ) -> [Violation.Kind] {
    let entries = threads.enumerated().map { place, threads in
      Journal.Entry(
        time: Int64(place) * interval,
        event: .holding(
          descriptors: 40, threads: threads, ownThreads: own?[place] ?? 4, memory: memory))
    }
    return HoldingHistory(0, entries).violations.map(\.kind)
  }

  /// Once a channel made for one change left a thread behind for a while.
  @Test func moreThreadsThanAreNeededAreFound() {
    #expect(held([4, 12, 30, 5]).isEmpty)
    #expect(held([4, 50, 5]) == [.leak])
  }

  /// A thread leaked at each join stays below each bound for long.
  @Test func whatGrowsIsFound() {
    #expect(held((0..<60).map { 4 + $0 % 7 * 4 }).isEmpty, "it goes up and down")
    #expect(held((0..<60).map { 4 + $0 / 2 }) == [.leak], "it goes up")
    #expect(
      held((0..<60).map { 4 + $0 / 2 }, every: 100_000_000).isEmpty,
      "a thread of Dispatch that is not needed any more is there for five seconds")
    #expect(held(Array(repeating: 4, count: 4), memory: 300_000).contains(.leak))
  }

  /// Threads of Dispatch that a burst of work has started are used in turn, and stay.
  @Test func ofThreadsThatStayOnlyOnesOwnAreALeak() {
    let stay = Array(repeating: 10, count: 30) + Array(repeating: 20, count: 30)
    #expect(held(stay).isEmpty)
    #expect(held(stay, own: stay) == [.leak])
  }

  // MARK: Contexts that were set

  private func heard(_ tokens: [String], told: [(String, Journal.Result?)]) -> [Violation.Kind] {
    var states = ToldHistory()
    for (token, result) in told {
      states.add(
        token, to: "w1",
        MadeCall(
          worker: 0, operation: .tell(to: "w1", token: token), begin: 0, end: 1, result: result))
    }
    var found: [Violation] = []
    for token in tokens { found += states.hear(token, from: "w0", as: "w1") }
    return (found + states.close()).map(\.kind)
  }

  @Test func statesThatComeAsPromisedAreNoViolation() {
    // Only the latest of several contexts counts; a member receives the context again after a
    // death.
    #expect(heard(["a", "c", "c"], told: [("a", .done), ("b", .done), ("c", .done)]).isEmpty)
    #expect(heard(["b"], told: [("a", .done), ("b", nil)]).isEmpty)
  }

  @Test func statesThatAreLostOldOrNobodysAreFound() {
    #expect(heard(["a"], told: [("a", .done), ("b", .done)]) == [.lost])
    #expect(heard(["b", "a"], told: [("a", .done), ("b", .done)]) == [.order])
    #expect(heard(["x"], told: []) == [.torn])
  }
}
