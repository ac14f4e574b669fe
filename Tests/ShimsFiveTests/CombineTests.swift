import Combine
import Foundation
import TestSupport
import TestTraits
import Testing

/// The semantics of the shim of Combine.
@Suite struct CombineTests {
  private enum Trouble: Error, Equatable { case small, large }

  /// Collects what a publisher delivers.
  private func record<P: Combine.Publisher>(
    _ publisher: P, into heard: Heard<String>
  ) -> Combine.AnyCancellable {
    publisher.sink(
      receiveCompletion: { heard.add("\($0)") }, receiveValue: { heard.add("\($0)") })
  }

  @Test(.blocking) func aCompletionIsDeliveredOnceAndNothingFollows() {
    let subject = PassthroughSubject<Int, Trouble>()
    let (first, second) = (Heard<String>(), Heard<String>())
    subject.send(0)
    let kept = record(subject, into: first)
    subject.send(1)
    subject.send(completion: .finished)
    subject.send(completion: .failure(.small))
    subject.send(2)
    let late = record(subject, into: second)
    #expect(first.all == ["1", "finished"])
    #expect(second.all == ["finished"])
    _ = (kept, late)
  }

  @Test(.blocking) func aCancellationEndsDelivery() {
    let subject = PassthroughSubject<Int, Never>()
    let heard = Heard<String>()
    var kept: AnyCancellable? = record(subject.map { $0 * 2 }.filter { $0 != 4 }, into: heard)
    for value in 1...3 { subject.send(value) }
    kept?.cancel()
    subject.send(4)
    #expect(heard.all == ["2", "6"])
    kept = record(subject, into: heard)
    kept = nil
    subject.send(5)
    subject.send(completion: .finished)
    #expect(heard.count == 2)
  }

  @Test(.blocking) func aSubscriptionCanCancelItselfAndSend() {
    let subject = PassthroughSubject<Int, Never>()
    var heard: [Int] = []
    var other: [Int] = []
    var kept: AnyCancellable?
    kept = subject.sink { value in
      heard.append(value)
      if value == 1 { subject.send(2) }
      if value == 3 { kept?.cancel() }
    }
    let second = subject.sink { other.append($0) }
    for value in [1, 3, 4] { subject.send(value) }
    #expect(heard == [1, 2, 3])
    // Both subscriptions receive the values in one order.
    #expect(other == [1, 2, 3, 4])
    second.cancel()
  }

  @Test(.blocking) func theCurrentValueComesFirst() {
    let subject = CurrentValueSubject<Int, Never>(1)
    let heard = Heard<String>()
    let kept = record(subject.dropFirst(), into: heard)
    var all: [Int] = []
    let second = subject.removeDuplicates().sink { all.append($0) }
    subject.value = 2
    subject.send(2)
    subject.value += 1
    #expect(subject.value == 3)
    #expect(heard.all == ["2", "2", "3"])
    #expect(all == [1, 2, 3])
    subject.send(completion: .finished)
    subject.send(9)
    #expect(subject.value == 3)
    _ = (kept, second)
  }

  @Test(.blocking) func latestValuesAreCombined() {
    let names = PassthroughSubject<String, Trouble>()
    let counts = CurrentValueSubject<Int, Trouble>(1)
    let flags = Just(true).setFailureType(to: Trouble.self)
    let heard = Heard<String>()
    let kept = record(names.combineLatest(counts, flags) { "\($0)\($1)\($2)" }, into: heard)
    #expect(heard.all == [])
    names.send("a")
    counts.send(2)
    names.send("b")
    #expect(heard.all == ["a1true", "a2true", "b2true"])
    names.send(completion: .finished)
    counts.send(3)
    #expect(heard.all.last == "b3true")
    counts.send(completion: .failure(.large))
    #expect(heard.all.last == "failure(\(Trouble.self).large)" || heard.count == 5)
    let pair = Heard<String>()
    let both = record(Publishers.CombineLatest(Just(1), Just("x")), into: pair)
    #expect(pair.all == ["(1, \"x\")", "finished"])
    _ = (kept, both)
  }

  @Test(.blocking) func publishersAreMergedAndFlattened() {
    let (left, right) = (PassthroughSubject<Int, Trouble>(), PassthroughSubject<Int, Trouble>())
    let (merged, flat) = (Heard<String>(), Heard<String>())
    let kept = [
      record(left.merge(with: right), into: merged),
      record(
        left.flatMap { value in
          [
            Just(value * 10).setFailureType(to: Trouble.self).eraseToAnyPublisher(),
            right.eraseToAnyPublisher(),
          ][value - 1]
        }, into: flat),
    ]
    left.send(1)
    left.send(2)
    right.send(3)
    left.send(completion: .finished)
    right.send(4)
    right.send(completion: .failure(.small))
    #expect(merged.all.prefix(4) == ["1", "2", "3", "4"])
    #expect(flat.all.prefix(3) == ["10", "3", "4"])
    #expect(merged.count == 5 && flat.count == 4, "the failure ends both")
    _ = kept
  }

  @Test(.blocking) func publishersWithoutValuesAndNamedOnesDeliver() {
    let (taps, numbers) = (PassthroughSubject<Void, Never>(), PassthroughSubject<Int, Never>())
    let (heard, merged) = (Heard<String>(), Heard<String>())
    let kept = [
      record(taps.map { "tap" }, into: heard),
      record(Publishers.Merge(numbers, Just(1)), into: merged),
      record(Empty<Int, Never>(), into: heard),
    ]
    taps.send()
    numbers.send(2)
    #expect(heard.all == ["finished", "tap"])
    #expect(merged.all == ["1", "2"])
    _ = kept
  }

  private final class Model {
    @Combine.Published var name: String
    init(_ name: String) { _name = Combine.Published(initialValue: name) }
  }

  @Test(.blocking) func aPropertyPublishesItsFirstValue() {
    let (model, heard) = (Model("a"), Heard<String>())
    let kept = record(model.$name, into: heard)
    model.name = "b"
    #expect(heard.all == ["a", "b"])
    kept.cancel()
  }

  @Test(.blocking) func errorsAreReplaced() {
    let heard = Heard<String>()
    let kept = [
      record(
        Just("x").tryMap { _ -> Int in throw Trouble.small }.replaceError(with: 7), into: heard),
      record(Just(Int?.none).replaceNil(with: 8), into: heard),
      record(Empty<Int, Trouble>(), into: heard),
      record(Empty<Int, Trouble>(completeImmediately: false), into: heard),
    ]
    #expect(heard.all == ["7", "finished", "8", "finished", "finished"])
    _ = kept
  }

  @Test(.blocking) func eventsAreObservedOnTheWay() {
    let subject = PassthroughSubject<Int, Never>()
    let heard = Heard<String>()
    func watched() -> AnyCancellable {
      subject.handleEvents(
        receiveOutput: { heard.add("\($0)") }, receiveCompletion: { heard.add("\($0)") },
        receiveCancel: { heard.add("cancelled") }
      ).sink { _ in }
    }
    let cancelled = watched()
    subject.send(1)
    cancelled.cancel()
    let finished = watched()
    subject.send(completion: .finished)
    finished.cancel()
    #expect(heard.all == ["1", "cancelled", "finished"])
  }

  @Test(.blocking) func aFutureRemembersItsResult() throws {
    let heard = Heard<String>()
    let calls = Heard<Int>()
    let future = Future<Int, Trouble> { promise in
      calls.add(1)
      DispatchQueue.global().async { promise(.success(5)) }
    }
    let kept = record(future, into: heard)
    try heard.wait("the result") { $0 == ["5", "finished"] }
    let late = record(future, into: heard)
    #expect(heard.count == 4 && calls.count == 1)
    _ = (kept, late)
  }

  @Test(.blocking) func severalThreadsSendToOneSubscription() throws {
    let subject = CurrentValueSubject<Int, Never>(0)
    var count = 0
    var last = -1
    // The variables need no lock: values are delivered one at a time.
    let kept = subject.sink { value in
      count += 1
      last = value
    }
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for number in 1...1000 { subject.send(thread * 1000 + number) }
    }
    #expect(count == 8001)
    #expect(last == subject.value)
    kept.cancel()
  }

  @Test(.blocking) func cancellingIsSafeWhileOthersSend() {
    for _ in 1...200 {
      let subject = PassthroughSubject<Int, Never>()
      let heard = Heard<Int>()
      let kept = subject.sink { heard.add($0) }
      DispatchQueue.concurrentPerform(iterations: 2) { thread in
        if thread == 0 { for number in 1...50 { subject.send(number) } } else { kept.cancel() }
      }
      #expect(heard.all == Array(1...50).prefix(heard.count).map { $0 })
    }
  }

  @Test(.blocking) func aReleasedSubjectLeavesNothing() {
    weak var gone: PassthroughSubject<Int, Never>?
    weak var object: NSObject?
    do {
      let (subject, retained) = (PassthroughSubject<Int, Never>(), NSObject())
      (gone, object) = (subject, retained)
      let kept = subject.map { $0 + 1 }.removeDuplicates().sink { _ in _ = retained }
      subject.send(1)
      _ = kept
    }
    #expect(gone == nil && object == nil)
  }
}
