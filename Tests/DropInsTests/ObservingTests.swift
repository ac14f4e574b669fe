import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns

/// As much of Combine as model classes use.
@Suite struct ObservingTests {
  private final class Source: ObservableObject {
    @Published var list: [Int] = [1]
    @Published var other = ""
  }

  private final class Follower: ObservableObject {
    @Published var texts: [String] = []
    private var cancellables: Set<AnyCancellable> = []

    func follow(_ source: Source, on queue: DispatchQueue) {
      source.$list
        .dropFirst()
        .map { $0.map { "\($0)" } }
        .receive(on: queue)
        .assign(to: \.texts, on: self)
        .store(in: &cancellables)
    }

    func forget() { cancellables = [] }
  }

  @Test(.blocking) func aPropertyFollowsAnother() throws {
    let (source, follower, queue) = (Source(), Follower(), DispatchQueue(label: "follower"))
    follower.follow(source, on: queue)
    queue.sync {}
    #expect(follower.texts == [])
    source.list = [2, 3]
    queue.sync {}
    #expect(follower.texts == ["2", "3"])
    follower.forget()
    source.list = [4]
    queue.sync {}
    #expect(follower.texts == ["2", "3"])
  }

  @Test(.blocking) func whatIsUnderWayWhenItIsCancelledIsNotPublished() throws {
    let (source, follower, queue) = (Source(), Follower(), DispatchQueue(label: "follower"))
    follower.follow(source, on: queue)
    queue.suspend()
    source.list = [4]
    follower.forget()
    queue.resume()
    queue.sync {}
    #expect(follower.texts == [])
  }

  @Test(.blocking) func observersAreToldBeforeTheChange() {
    let source = Source()
    var heard: [[Int]] = []
    var found: [[Int]] = []
    let observing = source.$list.sink {
      heard.append($0)
      found.append(source.list)
    }
    source.list.append(2)
    #expect(heard == [[1], [1, 2]])
    #expect(found == [[1], [1]])
    observing.cancel()
    source.list = []
    #expect(heard.count == 2)
  }

  @Test(.blocking) func theObjectTellsOfEveryProperty() {
    let source = Source()
    var told = 0
    let observing = source.objectWillChange.sink { told += 1 }
    source.list = []
    source.other = "a"
    #expect(told == 2)
    #expect(source.objectWillChange === source.objectWillChange)
    observing.cancel()
    source.other = "b"
    #expect(told == 2)
  }

  /// As when a model that is told of a change releases another model.
  @Test(.blocking) func whoIsCancelledDuringAChangeIsNotToldOfIt() {
    let source = Source()
    var heard: [String] = []
    var others: [AnyCancellable] = []
    let first = source.$list.dropFirst().sink { _ in
      heard.append("first value")
      others = []
    }
    let told = source.objectWillChange.sink {
      heard.append("first change")
      others.last?.cancel()
    }
    source.$list.dropFirst().sink { _ in heard.append("second value") }.store(in: &others)
    source.objectWillChange.sink { heard.append("second change") }.store(in: &others)
    source.list = []
    #expect(heard == ["first change", "first value"])
    first.cancel()
    told.cancel()
  }

  /// A first value of nil has no predecessor, and so is no duplicate.
  @Test(.blocking) func aFirstNilIsNoDuplicate() {
    let source = Source()
    source.list = []
    var heard: [Int?] = []
    let observation = source.$list.map(\.first).removeDuplicates().sink { heard.append($0) }
    for list in [[], [1], [1, 2], [], []] { source.list = list }
    #expect(heard == [nil, 1, nil])
    observation.cancel()
  }

  @Test(.blocking) func operatorsLeaveOutAndChange() {
    let source = Source()
    var heard: [Int] = []
    var kept: [AnyCancellable] = []
    source.$list.map(\.count).removeDuplicates().filter { $0 > 0 }.compactMap { Optional($0) }
      .eraseToAnyPublisher().sink { heard.append($0) }.store(in: &kept)
    for list in [[1], [2], [], [1, 2]] { source.list = list }
    #expect(heard == [1, 2])
    kept = []
    source.list = [1, 2, 3]
    #expect(heard == [1, 2])
  }

  private final class Whole: ObservableObject {
    @Published var part = Departing?.none
  }

  /// As a part that takes leave of its owner in its `deinit`.
  @Test(.blocking) func theEndOfAReplacedValueMayUseTheProperty() {
    let whole = UncheckedBox(Whole())
    let outcomes = Heard<Bool>()
    whole.value.part = Departing(outcomes) { _ = whole.value.part }
    #expect(outcomes.all == [])
    whole.value.part = nil
    #expect(outcomes.all == [true])
  }
}
