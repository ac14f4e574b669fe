import Foundation
import TestSupport
import TestTraits
import Testing

@testable import Communicator

/// The observers of a type, and the order of their notifications.
@Suite(.blocking) struct ObservationsTests {
  private let queue = DispatchQueue(label: "observers")
  private let heard = Heard<String>()

  private func observe(_ values: Observations<Int>, as name: String) -> Observation {
    values.add(queue) { [heard] in heard.add("\(name) \($0)") }
  }

  private var all: [String] {
    queue.sync {}
    return heard.all
  }

  @Test func observersAreNotifiedInTheOrderOfTheirStart() {
    let values = Observations<Int>()
    // More observers than a hash table has in order by chance.
    let names = (1...20).map { "\($0)" }
    let observations = names.map { observe(values, as: $0) }
    values.tell(1)
    #expect(all == names.map { "\($0) 1" })
    for observation in observations.dropLast() { values.remove(observation) }
    values.tell(2)
    #expect(all.dropFirst(names.count) == ["20 2"])
  }

  /// Collects values on the main actor, as a view's model does.
  @MainActor private final class Screen {
    nonisolated let heard = Heard<Int>()
    private var count = 0

    func observe(_ values: Observations<Int>, on queue: DispatchQueue) {
      _ = values.add(queue) { value in
        MainActor.preconditionIsolated()
        self.count += 1
        self.heard.add(value)
      }
    }
  }

  @Test func anObserverOfTheMainActorIsCalledThereInOrder() throws {
    let values = Observations<Int>()
    let (queue, numbers) = (queue, Array(1...100))
    let screen = DispatchQueue.main.sync {
      MainActor.assumeIsolated {
        let screen = Screen()
        screen.observe(values, on: queue)
        return screen
      }
    }
    for number in numbers { values.tell(number) }
    try screen.heard.wait("all") { $0 == numbers }
  }

  @Test func earlyValuesWaitInOrderForTheFirstObserver() {
    let values = Observations<Int>()
    for number in 1...3 { values.tell(number) }
    _ = observe(values, as: "first")
    values.tell(4)
    _ = observe(values, as: "second")
    #expect(all == ["first 1", "first 2", "first 3", "first 4"])
  }

  @Test func atMostAThousandValuesWait() {
    let values = Observations<Int>()
    for number in 1...1001 { values.tell(number) }
    _ = observe(values, as: "first")
    #expect(all == (1...1000).map { "first \($0)" })
  }

  @Test func statesDoNotWaitForAnObserver() {
    let values = Observations<Int>(keepingEarly: false)
    values.tell(1)
    _ = observe(values, as: "first")
    values.tell(2)
    #expect(all == ["first 2"])
  }
}
