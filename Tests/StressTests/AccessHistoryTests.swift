import TestTraits
import Testing

@testable import WormholeStress

/// The checks of accesses to files find their violations, and nothing where all is well.
@Suite(.blocking) struct AccessHistoryTests {
  private typealias Use = SharedFiles.Use
  private typealias Content = SharedFiles.Content

  /// One access of a separate worker: when its call began, its body was at work and its call ended.
  private struct Access {
    let token: String
    var uses: [Use]
    var times: (call: Int64, inside: Int64?, outside: Int64?, end: Int64?)
    var before: [Content] = []
    var after: [Content] = []
    var result: Journal.Result? = .done
    var takesOver = false

    /// Adds one to a file.
    init(
      _ token: String, _ way: Use.Way = .write, _ name: String = "patient/0",
      at times: (Int64, Int64?, Int64?, Int64?), from old: (Int, String) = (0, "-"),
      _ result: Journal.Result? = .done, takesOver: Bool = false
    ) {
      self.token = token
      uses = [Use(way, name)]
      self.times = times
      before = [Content(count: old.0, token: old.1)]
      after = way == .read ? before : [Content(count: old.0 + 1, token: token)]
      self.result = result
      self.takesOver = takesOver
    }

    var entries: [Journal.Entry] {
      var all: [Journal.Entry] = [Journal.Entry(time: 0, event: .life(number: 1, faults: "-"))]
      let operation = Journal.Operation.access(token: token, uses: uses, takesOver: takesOver)
      all.append(Journal.Entry(time: times.call, event: .begin(operation)))
      if let time = times.inside {
        all.append(Journal.Entry(time: time, event: .inside(token: token)))
      }
      if let time = times.outside {
        let event = Journal.Event.outside(token: token, before: before, after: after)
        all.append(Journal.Entry(time: time, event: event))
      }
      if let time = times.end, let result {
        all.append(Journal.Entry(time: time, event: .end(result)))
      }
      return all
    }
  }

  private func found(
    _ accesses: [Access], last: (Int, String), in file: String = "patient/0"
  ) -> [Violation.Kind] {
    var history = AccessHistory()
    for (worker, access) in accesses.enumerated() {
      let entries = access.entries
      history.add(entries, calls: MadeCall.calls(of: worker, in: entries))
    }
    return history.violations(last: [file: Content(count: last.0, token: last.1)]).map(\.kind)
  }

  private let superseded = Journal.Result.refused("superseded: others went past it")

  @Test func turnsThatWereTakenAreNoViolation() {
    #expect(
      found(
        [
          Access("a", at: (1, 2, 5, 6)), Access("b", at: (3, 7, 9, 10), from: (1, "a")),
          // Readers share.
          Access("r", .read, at: (11, 12, 20, 21), from: (2, "b")),
          Access("s", .read, "patient", at: (11, 13, 19, 22), from: (2, "b")),
          // The process died inside the access, before the write or after it.
          Access("c", at: (30, 31, nil, nil), from: (2, "b"), nil),
          Access("d", at: (32, 33, 34, 35), from: (2, "b")),
          // A conflicting access was in the way.
          Access("e", at: (36, nil, nil, 37), .refused("stopped: by w1")),
        ], last: (3, "d")
      ).isEmpty)
  }

  @Test func twoAtOnceAreFound() {
    let first = Access("a", at: (1, 2, 5, 6))
    #expect(
      found([first, Access("r", .read, at: (3, 4, 7, 8))], last: (1, "a")) == [.order])
    // The folder of the file is in its way, and a folder whose name only begins like it is not.
    #expect(
      found([first, Access("r", .read, "patient", at: (3, 4, 7, 8))], last: (1, "a")) == [.order])
    #expect(
      found([first, Access("r", .read, "patient/01", at: (3, 4, 7, 8))], last: (1, "a")).isEmpty)
  }

  /// Only an access that asks to take over overtakes a suspended access, which must be notified.
  @Test(arguments: [
    (true, true, true), (true, false, false), (false, true, false), (false, false, false),
  ])
  func onlyWhoeverAskedIsLetInWhileAnotherIsAtWork(
    _ asks: Bool, _ isTold: Bool, _ isRight: Bool
  ) {
    let kinds = found(
      [
        Access("a", .write, "loose/0", at: (1, 2, 5, 6), isTold ? superseded : .done),
        Access("b", .write, "loose/0", at: (1, 3, 4, 5), takesOver: asks),
      ], last: (1, "a"), in: "loose/0")
    #expect(kinds == (isRight ? [] : [.order]))
    // The access was let in first, and stopped before its body had begun.
    let late = found(
      [
        Access("a", .write, "loose/0", at: (1, 4, 5, 6), isTold ? superseded : .done),
        Access("b", .write, "loose/0", at: (1, 3, 4, 5), takesOver: asks),
      ], last: (1, "a"), in: "loose/0")
    #expect(late == kinds)
  }

  @Test func additionsThatAreLostAreFound() {
    #expect(
      found([Access("a", at: (1, 2, 3, 4)), Access("b", at: (5, 6, 7, 8))], last: (1, "b"))
        .contains(.lost))
    #expect(found([Access("a", at: (1, 2, 3, 4))], last: (0, "-")).contains(.lost))
    #expect(found([Access("a", at: (1, nil, nil, 4))], last: (0, "-")) == [.lost])
  }

  @Test func whatAnOvertakenOneReplacedAllTheSameIsFound() {
    let (old, new) = ("fenced/0", Journal.Result.done)
    func both(_ last: (Int, String)) -> [Violation.Kind] {
      found(
        [
          Access("a", .replace, old, at: (1, 2, 8, 9), superseded),
          Access("b", .replace, old, at: (1, 3, 4, 5), new, takesOver: true),
        ], last: last, in: old)
    }
    #expect(both((1, "b")).isEmpty)
    #expect(both((1, "a")) == [.order])
  }

  @Test func whoIsTakenOverThoughNobodyAskedIsFound() {
    #expect(found([Access("a", at: (1, 2, 3, 4), superseded)], last: (1, "a")).contains(.order))
  }

  @Test func whatIsOldTornOrChangesWhileItIsReadIsFound() {
    let first = Access("a", at: (1, 2, 3, 4))
    #expect(found([first, Access("r", .read, at: (5, 6, 7, 8))], last: (1, "a")) == [.order])
    #expect(
      found([first, Access("r", .read, at: (5, 6, 7, 8), from: (1, "x"))], last: (1, "a"))
        == [.torn])
    var reader = Access("r", .read, at: (5, 6, 7, 8), from: (1, "a"))
    reader.after = [Content(count: 2, token: "a")]
    #expect(found([first, reader], last: (1, "a")) == [.order])
  }

  /// Only an access that asked to take over may meet a suspended access that wakes.
  @Test(arguments: [
    (true, true, true), (true, false, false), (false, true, false), (false, false, false),
  ])
  func onlyWhoeverAskedMayMeetASleeperThatWrites(
    _ asks: Bool, _ isTold: Bool, _ isRight: Bool
  ) {
    let sleeper = Access(
      "a", .write, "loose/0", at: (1, 2, nil, isTold ? 9 : 3), isTold ? superseded : .done)
    let other = Access("b", .write, "loose/0", at: (4, 5, 6, 7), takesOver: true)
    var reader = Access(
      "r", .read, "loose/0", at: (10, 11, 13, 14), from: (1, "b"), takesOver: asks)
    reader.after = [Content(count: 1, token: "a")]
    let kinds = found([sleeper, other, reader], last: (1, "a"), in: "loose/0")
    #expect(kinds == (isRight ? [] : [.order]))
  }

  @Test func waitsThatDoNotEndAndRefusalsWithoutReasonAreFound() {
    #expect(
      found([Access("a", at: (1, nil, nil, 4), .refused("timedOut: w"))], last: (0, "-")) == [
        .stuck
      ])
    #expect(
      found([Access("a", at: (1, nil, nil, 4), .refused("deadlock: w"))], last: (0, "-")) == [
        .stuck
      ])
    #expect(
      found([Access("a", at: (1, 2, 3, 4), .refused("stopped: w"))], last: (0, "-"))
        .contains(.order))
  }

  /// Only inside the body of an access with a path can an inner access close a cycle.
  @Test func onlyWhoeverHasSomethingIsInARing() {
    let outer = Access("a", at: (1, 2, 7, 8))
    let inner = Access("b", .write, "patient/1", at: (3, nil, nil, 4), .refused("deadlock: w"))
    var entries = outer.entries
    entries.insert(contentsOf: inner.entries.dropFirst(), at: 3)
    let calls = MadeCall.calls(of: 0, in: entries)
    #expect(calls.map(\.isNested) == [true, false])
    var history = AccessHistory()
    history.add(entries, calls: calls)
    #expect(history.violations(last: ["patient/0": Content(count: 1, token: "a")]) == [])
  }
}
