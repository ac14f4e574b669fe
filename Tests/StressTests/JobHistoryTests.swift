import TestTraits
import Testing

@testable import WormholeStress

/// The checker of the shared queue finds each violation, and nothing where all is well.
@Suite(.blocking) struct JobHistoryTests {
  private func sent(
    _ token: String, _ key: String? = nil, result: Journal.Result? = .done, by worker: Int = 0
  ) -> MadeCall {
    MadeCall(
      worker: worker, operation: .job(token: token, key: key), begin: 0, end: 1, result: result)
  }

  private func took(_ token: String, again: Bool = false) -> Journal.Event {
    .tookJob(token: token, isRedelivered: again)
  }

  private func done(_ token: String) -> Journal.Event { .endedJob(token: token, isSure: true) }

  private func found(_ calls: [MadeCall], _ events: [Journal.Event]) -> [Violation.Kind] {
    var history = JobHistory()
    for call in calls { history.add(call) }
    // Two workers take turns.
    for worker in 0..<2 {
      let entries = events.enumerated().filter { $0.offset % 2 == worker }
      history.handle(
        entries.map { Journal.Entry(time: Int64($0.offset), event: $0.element) }, as: "w")
    }
    history.close()
    return history.violations.map(\.kind)
  }

  @Test func whatIsPromisedIsNoViolation() {
    let calls = [
      sent("a", "k"), sent("b", "k"), sent("c", "other"), sent("d"), sent("e", "k", by: 1),
      sent("f", result: nil), sent("g", result: .refused("full")),
    ]
    let events = [
      took("c"), took("a"), done("c"), took("e"), took("d"), took("a", again: true), done("a"),
      took("b"), done("b"), done("e"), done("d"),
    ]
    #expect(found(calls, events).isEmpty)
  }

  @Test func eachViolationIsFound() {
    #expect(found([sent("a")], []) == [.lost])
    #expect(found([], [took("a")]) == [.torn])
    #expect(found([sent("a", result: .refused("full"))], [took("a")]) == [.order])
    #expect(found([sent("a")], [took("a"), took("a")]) == [.twice])
    #expect(found([sent("a")], [took("a"), done("a"), done("a")]) == [.twice])
    let two = [sent("a", "k"), sent("b", "k")]
    #expect(found(two, [took("b"), done("b"), took("a")]) == [.order])
    // The second begins while the first one waits for its next attempt.
    #expect(found(two, [took("a"), took("b"), took("a", again: true)]) == [.order])
  }
}
