import TestTraits
import Testing

@testable import WormholeStress

/// Each checker finds its violations, and nothing where all is well.
@Suite(.blocking) struct HistoryTests {
  private func call(
    _ operation: Journal.Operation, _ result: Journal.Result?, _ begin: Int64, _ end: Int64,
    worker: Int = 0
  ) -> MadeCall {
    MadeCall(worker: worker, operation: operation, begin: begin, end: end, result: result)
  }

  private func put(_ token: String, _ expected: Int? = nil) -> Journal.Operation {
    .put(channel: "c", token: token, expected: expected)
  }

  private let read = Journal.Operation.read(channel: "c")

  private func found(_ calls: [MadeCall]) -> [Violation.Kind] {
    var history = ChannelHistory("c")
    for call in calls { history.add(call) }
    return history.violations().map(\.kind)
  }

  // MARK: Channels

  @Test func whatCouldHaveHappenedIsNoViolation() {
    #expect(
      found([
        call(put("a"), .version(1, "a"), 0, 10),
        // At the same time: either may have been first.
        call(put("b"), .version(3, "b"), 5, 30), call(put("c"), .version(2, "c"), 6, 20),
        call(read, .version(1, "a"), 8, 19),
        // The process of the change died, and the change happened all the same.
        call(put("d"), nil, 31, .max), call(read, .version(4, "d"), 40, 50),
        call(put("e", 3), .refused("conflict: another was there"), 41, 51),
      ]
      ).isEmpty)
  }

  @Test func whatWasRefusedAndIsThereIsFound() {
    #expect(
      found([
        call(put("a"), .refused("full: no room"), 0, 10), call(read, .version(1, "a"), 11, 20),
      ]) == [.order])
  }

  /// A different change that may have happened long before is no reason for a refusal.
  @Test func aRefusalForNothingIsFoundAfterADeathToo() {
    var dead = call(put("a"), nil, 0, .max)
    dead.over = 5
    let calls = [
      dead, call(read, .version(1, "a"), 10, 20),
      call(put("b", 1), .refused("conflict: another was there"), 30, 40),
    ]
    var history = ChannelHistory("c")
    for call in calls { history.add(call, since: 20) }
    #expect(history.violations().map(\.kind) == [.order])
    history = ChannelHistory("c")
    dead.over = 25
    for call in [dead] + calls.dropFirst() { history.add(call, since: 20) }
    #expect(history.violations().isEmpty)
  }

  /// A process that is stopped for a moment does not run for just the moment.
  @Test func howLongACallTookIsTheTimeItRan() {
    let call = call(read, .version(0, "-"), 100, 200)
    #expect(call.time(without: []) == 100)
    #expect(call.time(without: [0...90, 110...120, 190...500]) == 80)
    #expect(call.time(without: [150...(.max)]) == 50)
    #expect(call.time(without: [0...300]) == 0)
  }

  @Test func oneVersionForTwoValuesIsFound() {
    #expect(
      found([
        call(put("a"), .version(1, "a"), 0, 10), call(put("b"), .version(1, "b"), 5, 20),
      ]) == [.order])
  }

  @Test func whatIsOlderThanWhatWasThereIsFound() {
    #expect(
      found([
        call(put("a"), .version(1, "a"), 0, 10), call(put("b"), .version(2, "b"), 11, 20),
        call(read, .version(1, "a"), 21, 30),
      ]) == [.order])
  }

  @Test func whatNobodyPutIsFound() {
    #expect(found([call(read, .version(1, "a"), 0, 10)]) == [.torn])
  }

  @Test func whatIsReadBeforeItIsPutIsFound() {
    #expect(
      found([call(read, .version(1, "a"), 0, 10), call(put("a"), .version(1, "a"), 11, 20)])
        .contains(.order))
  }

  /// Where there is nothing to make the value in, none is made.
  @Test func anotherRefusalThanAConflictIsNone() {
    #expect(found([call(put("a", 0), .refused("notFound: no such file"), 0, 10)]).isEmpty)
  }

  @Test func aRefusalWithoutAReasonIsFound() {
    #expect(
      found([
        call(put("a"), .version(1, "a"), 0, 10),
        call(put("b", 1), .refused("conflict: another was there"), 11, 20),
      ]) == [.order])
  }

  // MARK: Counters

  private func counted(_ sums: [(Journal.Result?, Int64, Int64)], last: Int) -> [Violation.Kind] {
    var history = CounterHistory("n")
    for (result, begin, end) in sums { history.add(call(.add(channel: "n"), result, begin, end)) }
    return history.violations(last: last).map(\.kind)
  }

  @Test func additionsThatWereLostAreFound() {
    #expect(counted([(.number(1), 0, 9), (nil, 1, .max), (.number(3), 10, 20)], last: 3).isEmpty)
    #expect(counted([(.number(1), 0, 9), (.number(1), 0, 9)], last: 1).contains(.lost))
    #expect(counted([(.number(1), 0, 9)], last: 0).contains(.lost))
    #expect(counted([(.number(1), 0, 9)], last: 2).contains(.lost))
    #expect(counted([(.number(2), 0, 9), (.number(1), 10, 20)], last: 2) == [.order])
  }

  // MARK: Messages

  private func letters(
    _ calls: [MadeCall], _ events: [Journal.Event], to name: String = "w"
  ) -> [Violation.Kind] {
    var mail = MailHistory()
    for call in calls { mail.add(call) }
    mail.receive(
      events.enumerated().map { Journal.Entry(time: Int64($0.offset), event: $0.element) }, as: name
    )
    mail.close()
    return mail.violations.map(\.kind)
  }

  private func send(
    _ tokens: String..., to name: String = "w", result: Journal.Result? = .done
  ) -> MadeCall {
    call(.send(to: name, tokens: tokens), result, 0, 1)
  }

  private func got(_ token: String, again: Bool = false) -> Journal.Event {
    .got(token: token, from: "v", isRedelivered: again)
  }

  @Test func messagesThatComeAsPromisedAreNoViolation() {
    #expect(
      letters(
        [send("a"), send("b"), send("c", result: nil), send("d")],
        [got("a"), got("b"), got("b", again: true), got("d")]
      ).isEmpty)
  }

  /// With a receiver for each, odd ones and even ones are in order for themselves.
  @Test func eachKindIsInOrder() {
    let calls = ["1", "2", "3"].map { send($0, to: "w1") }
    #expect(letters(calls, [got("2"), got("1"), got("3")], to: "w1").isEmpty)
    #expect(letters(calls, [got("2"), got("3"), got("1")], to: "w1") == [.order])
  }

  @Test func whatIsLostTwiceOrOutOfTurnIsFound() {
    #expect(letters([send("a")], []) == [.lost])
    #expect(letters([send("a")], [got("a"), got("a")]) == [.twice])
    #expect(letters([send("a"), send("b")], [got("b"), got("a")]) == [.order])
    #expect(letters([], [got("a")]) == [.torn])
    #expect(
      letters(
        [send("a")], [got("a"), .acknowledged(token: "a", isSure: true), got("a", again: true)])
        == [.twice])
    #expect(
      letters([send("a"), call(.cancel(token: "a"), .truth(true), 2, 3)], [got("a")]) == [.twice])
  }

  /// "a0" is followed by its sender, "a1" is not.
  @Test func untruthsAboutHowAMessageEndedAreFound() {
    func told(_ token: String, _ end: String) -> Journal.Event { .told(token: token, end: end) }
    let handled: [Journal.Event] = [got("a0"), .acknowledged(token: "a0", isSure: true)]
    let back = call(.cancel(token: "a0"), .truth(true), 2, 3)
    let late = call(.cancel(token: "a0"), .truth(false), 2, 3)
    #expect(letters([send("a0")], handled + [told("a0", "delivered")]) == [])
    #expect(letters([send("a0"), back], [told("a0", "cancelled")]) == [])
    #expect(letters([send("a0", "b1")], handled + [got("b1"), told("a0", "delivered")]) == [])
    #expect(letters([send("a1")], [got("a1")]) == [])
    #expect(letters([send("a0")], handled) == [.untrue])
    #expect(letters([send("a0"), back], []) == [.untrue])
    #expect(letters([send("a0"), back], [told("a0", "delivered")]) == [.untrue])
    #expect(letters([send("a0"), late], [got("a0"), told("a0", "cancelled")]) == [.untrue])
    #expect(letters([send("a0")], handled + [told("a0", "cancelled")]) == [.untrue])
    #expect(letters([send("a0", "b1")], handled + [told("a0", "delivered")]) == [.untrue, .lost])
    #expect(letters([send("a0")], handled + [told("a0", "given up")]) == [.untrue])
    #expect(
      letters([send("a0")], handled + [told("a0", "delivered"), told("a0", "cancelled")])
        == [.untrue])
  }

  /// The message whose claim has failed is delivered to the receiver's next incarnation.
  @Test(arguments: [("rename~claimed@1:before:fail=EIO", true), ("rename@1:before:stop", false)])
  func onlyWhereCallsFailMayAMessageBeOvertaken(_ faults: String, _ isRight: Bool) {
    let kinds = letters(
      [send("a"), send("b"), send("c")],
      [
        .life(number: 1, faults: faults), got("b"), .life(number: 2, faults: "-"), got("a"),
        got("c"),
      ])
    #expect(kinds == (isRight ? [] : [.order]))
  }

  /// Without space for the record of a batch, only single messages are done for sure.
  @Test(arguments: [
    (["a"], "-", true), (["a", "b"], "-", true), (["a"], "pwrite@4:before:fail=ENOSPC", true),
    (["a", "b"], "pwrite@4:before:fail=ENOSPC", false),
  ])
  func whatIsDoneComesAgainOnlyOfABatchWithoutARecord(
    _ tokens: [String], _ faults: String, _ isFound: Bool
  ) {
    let calls = [call(.send(to: "w", tokens: tokens), .done, 0, 1)]
    let events: [Journal.Event] =
      [.life(number: 1, faults: faults)] + tokens.map { got($0) }
      + [
        .acknowledged(token: "a", isSure: true), .life(number: 2, faults: "-"),
        got("a", again: true),
      ]
    #expect(letters(calls, events) == (isFound ? [.twice] : []))
  }

  /// The message may have been cancelled without a notice to any process.
  @Test func whoeverDiesTakingBackLosesNothing() {
    #expect(letters([send("a"), call(.cancel(token: "a"), nil, 2, .max)], []).isEmpty)
  }

  /// Messages in an inbox are lost when another tool removes the inbox, and so are messages sent
  /// right afterwards.
  @Test(arguments: [(500, true), (500_000_000, false)])
  func onlyWhatWasSentBeforeAnInboxWasTakenMayBeGone(_ begin: Int64, _ isGone: Bool) {
    var mail = MailHistory()
    mail.lost = ("w", 1000)
    mail.add(call(.send(to: "w", tokens: ["a"]), .done, begin, begin + 1))
    mail.add(call(.send(to: "v", tokens: ["b"]), .done, begin, begin + 1))
    mail.receive([Journal.Entry(time: begin + 2, event: got("b"))], as: "v")
    mail.close()
    #expect(mail.violations.map(\.kind) == (isGone ? [] : [.lost]))
  }

  // MARK: Journals

  @Test(arguments: [
    Journal.Event.life(number: 3, faults: "any@1:before:kill"),
    .begin(.put(channel: "c", token: "1.2.3", expected: 7)),
    .begin(.send(to: "w", tokens: ["a", "b"])), .begin(.leave),
    .end(.version(4, "-")), .end(.refused("a reason")), .end(.truth(false)),
    .got(token: "a", from: "w", isRedelivered: true), .broken("it is"),
    .holding(descriptors: 4, threads: 3, ownThreads: 2, memory: 9000),
    .heard(token: "a", from: "w"),
    .tookJob(token: "a", isRedelivered: true), .endedJob(token: "a", isSure: false),
    .begin(.job(token: "a", key: "key 1")), .begin(.job(token: "a", key: nil)),
    .told(token: "a", end: "delivered"),
    .begin(.tell(to: "w", token: "a")), .begin(.stray(isRead: true)),
    .begin(
      .access(
        token: "a", uses: [.init(.read, "patient"), .init(.replace, "fenced/0")], takesOver: true)),
    .inside(token: "a"), .outside(token: "a", before: [], after: []),
    .outside(
      token: "a", before: [.empty, .init(count: 3, token: "b")],
      after: [.empty, .init(count: 4, token: "a")]),
  ])
  func whatIsWrittenIsRead(_ event: Journal.Event) {
    #expect(Journal.Event(event.words[...]) == event)
  }

  @Test func aCallIsCutOffByItsProcesssEnd() {
    let entries: [Journal.Event] = [
      .life(number: 1, faults: "-"), .begin(read), .end(.version(1, "a")), .begin(read),
      .life(number: 2, faults: "-"), .begin(read),
    ]
    let calls = MadeCall.calls(
      of: 0,
      in: entries.enumerated().map { Journal.Entry(time: Int64($0.offset), event: $0.element) })
    #expect(calls.map { $0.result == nil } == [false, true, true])
    #expect(calls.map(\.end) == [2, .max, .max])
  }
}
