import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns

/// Closures of programs, called where their isolation requires it.
@Suite(.blocking) struct IsolationTests {
  private actor Counter {
    nonisolated let heard = Heard<Int>()
    private var last = 0

    func handler() -> Handler<Int> {
      Handler { number in
        self.preconditionIsolated()
        self.last = number
        self.heard.add(self.last)
      }
    }

    /// Whether the handler finds itself at its place.
    func asking(_ handler: Heard<Handler<Int>>) -> Handler<Int> {
      Handler { number in
        self.preconditionIsolated()
        #expect(handler.all[0].isolation.isHere)
        if number == 1 { handler.all[0].call(2) }
        self.heard.add(number)
      }
    }
  }

  private func wait<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) throws -> Value
  {
    let made = Heard<Value>()
    Task { made.add(await body()) }
    try made.wait("the value") { !$0.isEmpty }
    return made.all[0]
  }

  @Test func anActorReceivesCallsInOrder() throws {
    let counter = Counter()
    let handler = try wait { await counter.handler() }
    for number in 1...1000 { handler.call(number) }
    try counter.heard.wait("all") { $0 == Array(1...1000) }
  }

  @Test func aCallFromTheHandlerItselfIsOverWhenItReturns() throws {
    let (counter, made) = (Counter(), Heard<Handler<Int>>())
    made.add(try wait { await counter.asking(made) })
    made.all[0].call(1)
    try counter.heard.wait("both") { $0 == [2, 1] }
    #expect(!made.all[0].isolation.isHere)
  }

  @Test func aClosureWithoutAnIsolationIsCalledAtOnce() {
    let heard = Heard<Int>()
    let handler = Handler<Int> { heard.add($0) }
    handler.call(1)
    #expect(heard.all == [1])
    #expect(handler.isolation.isNone && handler.isolation.isHere)
  }

  @Test func onlyABodyWithoutAnIsolationRunsOnTheGivenQueue() throws {
    let heard = Heard<String>()
    let queue = DispatchQueue(label: "given")
    let callbacks = CallbackQueue(queue, for: "a test")
    queue.suspend()
    Isolation(nil).run(on: callbacks) { heard.add("queue") }
    Isolation(MainActor.shared).run(on: callbacks) {
      MainActor.preconditionIsolated()
      heard.add("main")
    }
    try heard.wait("the main queue") { $0 == ["main"] }
    queue.resume()
    queue.sync {}
    #expect(heard.all == ["main", "queue"])
  }

  @Test func aClosureOfTheMainActorIsCalledOnTheMainQueue() throws {
    let heard = Heard<Int>()
    let handler = Handler<Int> { @MainActor number in
      MainActor.preconditionIsolated()
      heard.add(number)
    }
    #expect(handler.isolation.isMain && !handler.isolation.isHere)
    handler.call(1)
    try heard.wait("the call") { $0 == [1] }
    DispatchQueue.main.sync {
      handler.call(2)
      #expect(heard.all == [1, 2])
    }
  }
}
