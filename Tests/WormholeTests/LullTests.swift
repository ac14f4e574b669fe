import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// While all receivers are busy, the inbox watch sends no notices; no message is missed.
@Suite(.blocking) struct LullTests {
  private let pair: Pair
  private let heard = Heard<Handed>()
  /// The number whose handler waits; 0 for none.
  private let held = Monitor(0)

  init() throws { pair = try Pair() }

  private func receive() throws -> Subscription {
    let (heard, held) = (heard, held)
    return try pair.watch.receive { message in
      let handed = try Handed(message)
      heard.add(handed)
      _ = held.wait(until: .now + patience) { $0 == handed.number ? nil : true }
    }
  }

  private func letGo() { held.signal { $0 = 0 } }

  @Test func afterALullTheInboxIsListenedToAgain() throws {
    let receiving = try receive()
    for round in 0..<20 {
      let first = 5 * round + 1
      held.withLock { $0 = first }
      try pair.send([first])
      let arrival: Void? = try? heard.wait("the first") { $0.last?.number == first }
      try #require(arrival != nil, "round \(round): \(heard.all.suffix(5))")
      // Notified while the only receiver is busy: from here on, no notice arrives.
      try pair.send(first + 1...first + 4)
      letGo()
      let all: Void? = try? heard.wait("all of the round") { $0.count == first + 4 }
      try #require(all != nil, "round \(round): \(heard.all.suffix(5))")
    }
    #expect(heard.all.map(\.number) == Array(1...100))
    receiving.stop()
  }

  @Test func whoComesInALullReceives() throws {
    held.withLock { $0 = 1 }
    let receiving = try receive()
    try pair.send([1])
    try heard.wait("the first") { $0.count == 1 }
    try pair.send(2...4)
    // The busy receiver is no longer relied on.
    let others = Heard<Handed>()
    let next = try pair.watch.note(others)
    try others.wait("the others") { $0.map(\.number) == [2, 3, 4] }
    letGo()
    receiving.stop()
    try pair.send([5])
    try others.wait("one more") { $0.last?.number == 5 }
    next.stop()
  }

  /// Listed messages wait in the process; an urgent message must not arrive behind them.
  @Test func whatIsUrgentIsFoundInALull() throws {
    // The receiver lists the inbox more rarely if a listing takes long.
    for pause in [20, 200, 2000, 20_000] {
      let scene = try Self()
      scene.held.withLock { $0 = 1 }
      try scene.pair.send(1...3)
      let receiving = try scene.receive()
      try scene.heard.wait("the first") { $0.count == 1 }
      try scene.pair.send([4])
      try scene.pair.send([5]) { $0.isUrgent = true }
      let begin = Instant.now
      try eventually("it is time to look") { Instant.now > begin + .milliseconds(pause) }
      scene.letGo()
      try scene.heard.wait("all") { $0.count == 5 }
      receiving.stop()
      let came = scene.heard.all.map(\.number)
      #expect(came.filter { $0 != 5 } == [1, 2, 3, 4])
      if came[1] == 5 { return }
    }
    Issue.record("it was never looked for")
  }
}
